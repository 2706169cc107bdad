"""Key stores and trust stores: PEM and PKCS12 files, or PEM texts. Blocking: not for an event loop."""

from __future__ import annotations

from typing import Final, NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

from headrace.config.secret import Secret
from headrace.config.tls_properties import KeyStore, TrustStore
from headrace.core.errors import ConfigError
from headrace.tls import pem

MAX_STORE_BYTES: Final = 4 * 1024 * 1024
"""The authorities of all browsers together are a tenth of that."""
_JAVA_MAGIC: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_DER_SEQUENCE: Final = b"\x30"


class Identity(NamedTuple):
    """A private key and its certificates, as PEM."""

    key: bytes
    chain: bytes
    password: Secret | None
    """Of the key, if that is encrypted."""

    def __repr__(self) -> str:
        return "Identity(redacted)"


def read_identity(store: KeyStore) -> Identity:
    """Raises ConfigError."""
    if store.location is None:
        assert store.key is not None
        assert store.certificate_chain is not None
        key, chain = store.key.reveal().encode(), store.certificate_chain.reveal().encode()
        return _pem_identity("ssl.keystore.key and .certificate.chain", key + b"\n" + chain, store)
    content = _read(store.location)
    if _form(store.type, store.location, content, "ssl.keystore") == "PEM":
        return _pem_identity(store.location, content, store)
    return _pkcs12_identity(store, content)


def read_trusted(store: TrustStore) -> bytes:
    """Certificates as PEM, one after the other. Raises ConfigError."""
    if store.location is None:
        assert store.certificates is not None
        source, content = "ssl.truststore.certificates", store.certificates.reveal().encode()
        found = pem.certificates(content)
    else:
        source, content = store.location, _read(store.location)
        if _form(store.type, source, content, "ssl.truststore") == "PEM":
            found = pem.certificates(content)
        else:
            opened = _opened(source, content, store.password, "ssl.truststore.password")
            own = [] if opened.cert is None else [opened.cert]
            found = [each.certificate.public_bytes(Encoding.PEM) for each in (*own, *opened.additional_certs)]
    if not found:
        raise ConfigError(f"{source} has no certificate to trust")
    return b"".join(found)


def _read(location: str) -> bytes:
    try:
        with open(location, "rb") as file:
            content = file.read(MAX_STORE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {location}: {error.strerror}") from None
    if len(content) > MAX_STORE_BYTES:
        raise ConfigError(f"{location} has more than {MAX_STORE_BYTES} bytes: it is no store of certificates")
    return content


def _form(type: str, location: str, content: bytes, prefix: str) -> str:
    """PEM or PKCS12. Java's own type takes PKCS12 as well; here also PEM, whatever the content is."""
    if content.startswith(_JAVA_MAGIC):
        raise ConfigError(
            f"{location} is a JKS store, which only Java reads; convert it by `keytool -importkeystore"
            f" -srckeystore {location} -destkeystore {location}.p12 -deststoretype PKCS12`, and set"
            f" {prefix}.location to that file and {prefix}.type=PKCS12"
        )
    found = "PEM" if b"-----BEGIN " in content else "PKCS12" if content[:1] == _DER_SEQUENCE else None
    if found is None or type not in ("JKS", found):
        wanted = "PEM or PKCS12" if type == "JKS" else type
        raise ConfigError(f"{location} is not {wanted}{f' but {found}: set {prefix}.type' if found else ''}")
    return found


def _pem_identity(source: str, content: bytes, store: KeyStore) -> Identity:
    key, chain = pem.private_key(content), pem.certificates(content)
    if key is None or not chain:
        missing = "private key" if key is None else "certificate"
        raise ConfigError(f"{source} has no {missing} in PEM: it needs the key and its certificates")
    return Identity(key, b"".join(chain), store.key_password or store.password)


def _pkcs12_identity(store: KeyStore, content: bytes) -> Identity:
    assert store.location is not None
    opened = _opened(store.location, content, store.password, "ssl.keystore.password")
    if opened.key is None or opened.cert is None:
        raise ConfigError(f"{store.location} has no private key with a certificate: is it a trust store?")
    key = opened.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = [opened.cert, *opened.additional_certs]
    return Identity(key, b"".join(each.certificate.public_bytes(Encoding.PEM) for each in chain), None)


def _opened(
    location: str, content: bytes, password: Secret | None, password_property: str
) -> pkcs12.PKCS12KeyAndCertificates:
    try:
        return pkcs12.load_pkcs12(content, None if password is None else password.reveal().encode())
    except UnsupportedAlgorithm:
        raise ConfigError(
            f"cannot open {location}: its encryption is too old; make it anew by `keytool -importkeystore`"
        ) from None
    except ValueError:
        raise ConfigError(f"cannot open {location}: {password_property} is wrong, or the file is") from None
