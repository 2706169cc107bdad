"""What Spark is told to hide: all of TLS and SASL, beside what a session hides already."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from headrace.spark.concealing import SETTING, WHOLE, conceal_options


class Session:
    """With the settings of one, and nothing else."""

    def __init__(self, **settings: str) -> None:
        self.settings = settings
        self.conf = self

    def get(self, name: str, default: str) -> str:
        return self.settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value


def concealed(theirs: str | None) -> str:
    session: Any = Session(**({} if theirs is None else {SETTING: theirs}))
    conceal_options(cast(SparkSession, session))
    once = session.settings[SETTING]
    conceal_options(cast(SparkSession, session))
    assert session.settings[SETTING] == once
    return str(once)


def test_what_a_session_of_its_own_hides_stays_hidden() -> None:
    assert concealed(None) == WHOLE
    assert re.search(concealed("(?i)customer"), "customer.name")


@pytest.mark.parametrize("theirs", [None, "(?i)customer"])
def test_everything_about_tls_and_sasl_is_hidden(theirs: str | None) -> None:
    pattern = concealed(theirs)
    for name in ("kafka.sasl.jaas.config", "kafka.ssl.keystore.key", "kafka.ssl.truststore.password"):
        assert re.search(pattern, name)
    for name in ("kafka.bootstrap.servers", "kafka.security.protocol", "topic"):
        assert not re.search(pattern, name)
