"""What a failed handshake means to the one who dialled, and what to set."""

from __future__ import annotations

import ssl
from typing import Final

_ALERT_RECORD: Final = 0x1503
"""How a listener with TLS answers a request without it, where the length of an answer should stand."""

_SENTENCES: Final = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS: set security.protocol to PLAINTEXT or SASL_PLAINTEXT",
    "UNEXPECTED_EOF_WHILE_READING": "it hung up during the TLS handshake: does this listener speak TLS?",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it wants a certificate: set ssl.keystore.location",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it refuses the handshake: is a certificate missing, or a suite?",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust our certificate: is it signed by the cluster's authority?",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "our certificate has expired: renew it",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not accept our certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not accept our certificate",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it does not speak our version of TLS: see ssl.enabled.protocols",
    "UNSUPPORTED_PROTOCOL": "it does not speak our version of TLS: see ssl.enabled.protocols",
    "NO_CIPHERS_AVAILABLE": "there is no cipher suite in common: see ssl.cipher.suites",
}
_UNKNOWN_ISSUERS: Final = frozenset((2, 18, 19, 20, 21))
"""OpenSSL's numbers for a chain that ends at nobody whom we trust."""
_EXPIRED: Final = 10


def tls_failure(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        message = error.verify_message or "not accepted"
        if error.verify_code == _EXPIRED:
            return "its certificate has expired: renew it"
        if error.verify_code in _UNKNOWN_ISSUERS:
            return f"its certificate is not trusted ({message}): set ssl.truststore.location"
        return f"its certificate is not accepted: {message}"
    reason = getattr(error, "reason", None)
    if isinstance(reason, str):
        return _SENTENCES.get(reason, f"TLS failed: {reason.lower().replace('_', ' ')}")
    if isinstance(error, OSError):
        return _SENTENCES["UNEXPECTED_EOF_WHILE_READING"]
    return f"TLS failed: {error}"


def odd_length(length: int) -> str:
    """Of an answer whose length cannot be."""
    if length >> 16 == _ALERT_RECORD:
        return "answers in TLS: set security.protocol to SSL or SASL_SSL"
    return f"sent a frame of {length} bytes"
