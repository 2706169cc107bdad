"""A broker of either kind with TLS, SASL and an authorizer: its properties, certificates and users.

SSL wants a certificate of the client, whose CN is the user. SASL_SSL takes PLAIN and SCRAM. The plaintext
listener is there to make the users.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.certificates import Authority, chain, encrypted_key

MECHANISMS = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
_SECONDS = 30
_MODULE = "org.apache.kafka.common.security"


def identity(authority: Authority, name: str) -> Path:
    """In one file, with the key in the only form that Java reads; the key in a file of its own too."""
    issued = authority.issue(name)
    key, certificates = encrypted_key(issued, ""), chain(issued)
    issued.write_text(key + certificates)
    issued.with_suffix(".key").write_text(key)
    return issued


def secured_properties(authority: Authority, passwords: Mapping[str, str]) -> dict[str, str]:
    """`passwords` are those for PLAIN. alice may do everything, whichever way she comes."""
    plain = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(identity(authority, "broker")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.trust_store),
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (
            f"{_MODULE}.plain.PlainLoginModule required {plain};"
        ),
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": (
            f"{_MODULE}.scram.ScramLoginModule required;"
        ),
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
            f"{_MODULE}.scram.ScramLoginModule required;"
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/,DEFAULT",
        "super.users": "User:ANONYMOUS;User:alice",
        "group.initial.rebalance.delay.ms": "0",
    }


def make_users(bootstrap: str, passwords: Mapping[str, str]) -> None:
    """For SCRAM."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for mechanism in MECHANISMS.values():  # one request alters a user once
        upserts = [
            UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
            for user, password in passwords.items()
        ]
        for future in admin.alter_user_scram_credentials(upserts).values():  # type: ignore[arg-type]  # stub
            future.result(_SECONDS)
