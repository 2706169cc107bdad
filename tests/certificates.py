"""Certificates for tests: an authority, and identities as PEM and PKCS12 files."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

HOSTS = ("127.0.0.1", "localhost")


class Authority:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self.trust_store = directory / "ca.pem"
        self._authority.cert_pem.write_to_path(str(self.trust_store))

    @property
    def pem(self) -> bytes:
        return self._authority.cert_pem.bytes()

    def issue(
        self,
        name: str,
        *hosts: str,
        expires: datetime | None = None,
        begins: datetime | None = None,
        file: str | None = None,
    ) -> Path:
        """A key with its certificates in one PEM file, for a server or a client."""
        path = self.directory / (file or f"{name}.pem")
        issued = self._authority.issue_cert(
            *(hosts or HOSTS),
            common_name=name,
            organization_name="Headrace",
            organization_unit_name="Tests",
            not_after=expires,
            not_before=begins,
            key_type=trustme.KeyType.ECDSA,
        )
        path.write_bytes(issued.private_key_and_cert_chain_pem.bytes())
        return path

    def as_pkcs12(self, identity: Path, password: str) -> Path:
        content = identity.read_bytes()
        own, *others = x509.load_pem_x509_certificates(content)
        key = load_pem_private_key(content, None)
        assert isinstance(key, EllipticCurvePrivateKey)
        path = identity.with_suffix(".p12")
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"key", key, own, others, BestAvailableEncryption(password.encode())
            )
        )
        return path

    def as_trusted_pkcs12(self, password: str) -> Path:
        path = self.directory / "ca.p12"
        trusted = [pkcs12.PKCS12Certificate(x509.load_pem_x509_certificate(self.pem), b"ca")]
        encryption = BestAvailableEncryption(password.encode())
        path.write_bytes(pkcs12.serialize_java_truststore(trusted, encryption))
        return path


def encrypted_key(identity: Path, password: str) -> str:
    """The private key of a PEM file, as encrypted PKCS#8."""
    key = load_pem_private_key(identity.read_bytes(), None)
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def chain(identity: Path) -> str:
    content = identity.read_text()
    return content[content.index("-----BEGIN CERTIFICATE-----") :]
