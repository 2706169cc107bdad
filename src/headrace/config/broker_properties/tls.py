"""TLS: certificates, whom to trust, and which versions and suites. Each may differ by listener, under the
prefix `listener.name.<name>.`"""

from __future__ import annotations

from headrace.config.declare import boolean, names, optional_secret, optional_text, text

STORE_TYPES = ("JKS", "PKCS12", "PEM")
PROTOCOLS = ("TLSv1.2", "TLSv1.3")


class TlsListenerProperties:
    ssl_keystore_type = text(
        "ssl.keystore.type",
        "JKS",
        "Form of the key store: PEM or PKCS12. With the default the file itself tells; the old Java form is "
        "refused with the command that converts it.",
        allowed=STORE_TYPES,
    )
    ssl_keystore_location = optional_text(
        "ssl.keystore.location", "File with the private key and the certificates, the broker's own first."
    )
    ssl_keystore_password = optional_secret("ssl.keystore.password", "Password of a PKCS12 key store.")
    ssl_key_password = optional_secret(
        "ssl.key.password", "Password of the private key, where it is encrypted."
    )
    ssl_keystore_key = optional_secret(
        "ssl.keystore.key", "Private key as PEM text, instead of a file. PKCS#8, encrypted or not."
    )
    ssl_keystore_certificate_chain = optional_secret(
        "ssl.keystore.certificate.chain", "Certificates as PEM text, the broker's own first."
    )
    ssl_truststore_type = text(
        "ssl.truststore.type",
        "JKS",
        "Form of the trust store: PEM or PKCS12. With the default the file itself tells.",
        allowed=STORE_TYPES,
    )
    ssl_truststore_location = optional_text(
        "ssl.truststore.location", "File with the certificates of the authorities that are trusted."
    )
    ssl_truststore_password = optional_secret("ssl.truststore.password", "Password of a PKCS12 trust store.")
    ssl_truststore_certificates = optional_secret(
        "ssl.truststore.certificates", "Trusted certificates as PEM text, instead of a file."
    )
    ssl_client_auth = text(
        "ssl.client.auth",
        "none",
        "Whether clients show a certificate: none, requested or required. A SASL_SSL listener asks for one "
        "only where this is set under its own prefix.",
        allowed=("required", "requested", "none"),
    )
    ssl_enabled_protocols = names(
        "ssl.enabled.protocols", PROTOCOLS, "Versions of TLS that are spoken.", allowed=PROTOCOLS
    )
    ssl_protocol = text(
        "ssl.protocol",
        "TLSv1.3",
        "The newest version of TLS that is spoken.",
        allowed=(*PROTOCOLS, "TLS"),
    )
    ssl_cipher_suites = names(
        "ssl.cipher.suites",
        (),
        "Suites for TLS 1.2, by Java's names; none leaves the choice to OpenSSL. The three of TLS 1.3 cannot "
        "be chosen here: name all of them, or leave TLSv1.3 out of ssl.enabled.protocols.",
    )
    ssl_endpoint_identification_algorithm = text(
        "ssl.endpoint.identification.algorithm",
        "https",
        "With https a broker compares the host of another broker with its certificate; empty does not.",
        check=lambda value: None if value.lower() in ("", "https") else "write https, or nothing",
    )
    ssl_principal_mapping_rules = text(
        "ssl.principal.mapping.rules",
        "DEFAULT",
        "How the distinguished name of a certificate becomes the name of a principal: DEFAULT, or "
        "RULE:pattern/replacement/ with L or U, separated by commas.",
    )
    ssl_allow_dn_changes = boolean(
        "ssl.allow.dn.changes",
        False,
        "Whether a certificate that replaces another while the broker runs may have another subject.",
    )
    ssl_allow_san_changes = boolean(
        "ssl.allow.san.changes",
        False,
        "Whether a certificate that replaces another while the broker runs may lack some of its host names.",
    )
