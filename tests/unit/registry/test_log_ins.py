"""Passwords are checked where the users are: at the brokers."""

from __future__ import annotations

import pytest

from headrace.client.security import PLAINTEXT, ClientSecurity
from headrace.config.secret import Secret
from headrace.core.errors import ConfigError
from headrace.registry.log_ins import log_in_check

_JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="r" password="own";'
_SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": _JAAS,
}


def test_a_registry_without_sasl_cannot_check_them() -> None:
    with pytest.raises(ConfigError, match=r"set security\.protocol=SASL_SSL and sasl\.mechanism"):
        log_in_check("127.0.0.1:1", PLAINTEXT)


async def test_an_empty_password_is_wrong_without_a_question() -> None:
    assert not await log_in_check("127.0.0.1:1", ClientSecurity.parse(_SASL))("alice", Secret(""))
