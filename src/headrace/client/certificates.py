"""A certificate authority of one's own, for clusters whose company has none: like mkcert, for brokers.

Keys are ECDSA P-256: a handshake costs half of what it costs with RSA. Files are PEM. Keys have mode 0600.
Nothing is overwritten unless it is to be renewed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from headrace.client.errors import ClientFailure
from headrace.client.private_files import PRIVATE, write_file

CA_DAYS: Final = 3650
DAYS: Final = 90
EARLIER: Final = timedelta(minutes=5)
"""Clocks differ: a certificate is valid a little before it is made."""
CA_CERTIFICATE: Final = "ca.pem"
CA_KEY: Final = "ca-key.pem"


class Made(NamedTuple):
    certificate: Path
    key: Path
    keystore: Path
    """Both in one file, for `ssl.keystore.location`."""


class Authority:
    """The authority whose files are in a directory."""

    def __init__(
        self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey, directory: Path
    ) -> None:
        self._certificate = certificate
        self._key = key
        self.directory = directory

    @property
    def path(self) -> Path:
        """What clients have to trust."""
        return self.directory / CA_CERTIFICATE

    @classmethod
    def at(cls, directory: Path) -> Authority:
        """The one that is there, or a new one."""
        if (directory / CA_CERTIFICATE).exists():
            return cls._loaded(directory)
        return cls._made(directory)

    @classmethod
    def _made(cls, directory: Path) -> Authority:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Headrace CA")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - EARLIER)
            .not_valid_after(now + timedelta(days=CA_DAYS))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        write_file(directory / CA_KEY, _encoded(key), PRIVATE)
        write_file(directory / CA_CERTIFICATE, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
        return cls(certificate, key, directory)

    @classmethod
    def _loaded(cls, directory: Path) -> Authority:
        try:
            certificate = x509.load_pem_x509_certificate((directory / CA_CERTIFICATE).read_bytes())
            key = serialization.load_pem_private_key((directory / CA_KEY).read_bytes(), None)
        except (OSError, ValueError, TypeError) as error:
            raise ClientFailure(
                f"the authority in {directory} cannot be read: {error}",
                f"it needs {CA_CERTIFICATE} and {CA_KEY}; another directory gets a new one",
            ) from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ClientFailure(f"{directory / CA_KEY} is not an EC key", "use the authority's own tools")
        return cls(certificate, key, directory)

    def issue(
        self,
        name: str,
        hosts: Iterable[str],
        *,
        organization: str = "",
        days: int = DAYS,
        renew: bool = False,
    ) -> Made:
        """For a server at these hosts, or for a client without any. Both may connect to others."""
        made = Made(*(self.directory / f"{name}{end}.pem" for end in ("", "-key", "-keystore")))
        if made.certificate.exists() and not renew:
            raise ClientFailure(f"{made.certificate} exists", "renew it with `headrace cert renew`")
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        if organization:
            attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
        now = datetime.now(UTC)
        ends = min(now + timedelta(days=days), self._certificate.not_valid_after_utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(attributes))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - EARLIER)
            .not_valid_after(ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        names = [_general_name(host) for host in hosts]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        chain = certificate.public_bytes(serialization.Encoding.PEM)
        write_file(made.keystore, _encoded(key) + chain, PRIVATE)
        write_file(made.key, _encoded(key), PRIVATE)
        write_file(made.certificate, chain, 0o644)  # the last: where it is, the others are
        return made


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _encoded(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


class Shown(NamedTuple):
    path: Path
    subject: str
    issuer: str
    hosts: tuple[str, ...]
    ends: datetime

    def days_left(self, now: datetime) -> int:
        return (self.ends - now).days


def show(path: Path) -> list[Shown]:
    """Each certificate of a PEM file."""
    try:
        found = x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ClientFailure(f"{path} holds no certificate: {error}", "name a PEM file") from None
    return [
        Shown(
            path,
            each.subject.rfc4514_string(),
            each.issuer.rfc4514_string(),
            _hosts(each),
            each.not_valid_after_utc,
        )
        for each in found
    ]


def _hosts(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(each.value) for each in names)
