"""What is said of a certificate: until when it holds, whom it names."""

from __future__ import annotations

from typing import NamedTuple

from cryptography import x509

from headrace.core.errors import ConfigError


class CertificateFacts(NamedTuple):
    subject: str
    names: frozenset[str]
    """Hosts and addresses for which it stands."""
    not_before: float
    not_after: float
    """Seconds since 1970."""


def facts_of(chain: bytes) -> CertificateFacts:
    """Of the first certificate of a chain in PEM. Raises ConfigError."""
    try:
        certificate = x509.load_pem_x509_certificate(chain)
        return CertificateFacts(
            certificate.subject.rfc4514_string(),
            _names(certificate),
            certificate.not_valid_before_utc.timestamp(),
            certificate.not_valid_after_utc.timestamp(),
        )
    except ValueError as error:
        raise ConfigError(f"the certificate cannot be read: {error}") from None


def _names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return frozenset()
    hosts = extension.value.get_values_for_type(x509.DNSName)
    addresses = extension.value.get_values_for_type(x509.IPAddress)
    return frozenset((*hosts, *map(str, addresses)))
