"""How tasks connect with a delegation token: as the user does, without anything that is the user's secret."""

from __future__ import annotations

import re
from typing import Final

from headrace.client.credentials import LOGIN_MODULES
from headrace.config.secret import Secret
from headrace.core.errors import ConfigError
from headrace.spark.kafka_properties import KafkaProperties

_SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_OF_THE_USER: Final = re.compile(r"sasl[.]|ssl[.]keystore[.]|ssl[.]key[.]password$")
"""How the user logs in. Whom to trust stays, with the password of that store: it opens no door."""


def mechanism_of(kafka: KafkaProperties, wanted: str | None) -> str:
    """The user's own, where tokens can be used with it: that one the brokers have. Raises ConfigError."""
    own = kafka.get("sasl.mechanism", "").strip().upper()
    chosen = wanted or (own if own in _SCRAM else _SCRAM[-1])
    if chosen not in _SCRAM:
        raise ConfigError(f"mechanism {chosen}: delegation tokens need one of {', '.join(_SCRAM)}")
    return chosen


def token_bootstrap(kafka: KafkaProperties, wanted: str | None) -> str:
    """Where the tasks log in. Raises ConfigError."""
    protocol = _protocol(kafka)
    if protocol == "PLAINTEXT":
        raise ConfigError(
            "security.protocol=PLAINTEXT: a delegation token is for somebody who has logged in; set "
            "SASL_SSL, or SSL with a certificate"
        )
    if protocol == "SSL" and not wanted:
        raise ConfigError(
            "security.protocol=SSL: a token is used by SASL, so tasks need another listener than the "
            'driver\'s; give bootstrap="host:port" of the one with SASL_SSL'
        )
    return wanted or kafka.bootstrap


def token_properties(
    kafka: KafkaProperties, token_id: str, hmac: Secret, *, bootstrap: str, mechanism: str
) -> KafkaProperties:
    kept = {name: value for name, value in kafka.items() if not _OF_THE_USER.match(name)}
    # Neither the id nor the HMAC, which is base64, has a character that would have to be escaped.
    jaas = f'{LOGIN_MODULES[mechanism]} required tokenauth="true" username="{token_id}"'
    return KafkaProperties(
        {
            **kept,
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_SSL" if _protocol(kafka).endswith("SSL") else "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{jaas} password="{hmac.reveal()}";',
        }
    )


def _protocol(kafka: KafkaProperties) -> str:
    return kafka.get("security.protocol", "PLAINTEXT").strip().upper()
