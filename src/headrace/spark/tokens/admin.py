"""Delegation tokens made, renewed and expired with Kafka's own client in Spark's process.

So whatever way to log in the connector has works here too.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # comes with PySpark, without types
from pyspark.sql import SparkSession

from headrace.config.secret import Secret
from headrace.core.errors import HeadraceError
from headrace.spark.jvm import require_kafka
from headrace.spark.kafka_client import cause, java_properties, told
from headrace.spark.kafka_properties import KafkaProperties

_CURES: Final = {
    "DelegationTokenDisabledException": "set delegation.token.secret.key on every broker",
    "UnsupportedByAuthenticationException": (
        "log in by SASL or with a certificate; whoever came with a token gets no other"
    ),
}
_NOT_LOGGED_IN: Final = "SaslAuthenticationException"
_FOR_AS_LONG_AS_THE_BROKERS_SAY: Final = -1
_AT_ONCE: Final = -1


class TokenFailed(HeadraceError):
    """What Kafka's client said, and where it is known the cure."""


class Token(NamedTuple):
    """Times are those of the broker's clock, which may differ from the driver's."""

    token_id: str
    hmac: Secret
    """In base64, as it is used for a password."""
    owner: str
    issued_ms: int
    expires_ms: int
    """Unless it is renewed."""
    ends_ms: int
    """No renewal goes beyond this."""


class TokenAdmin(Protocol):
    """All of it raises TokenFailed."""

    def create(self, lifetime_ms: int | None) -> Token: ...

    def renew(self, token: Token, period_ms: int) -> int:
        """When it expires now."""
        ...

    def expire(self, token: Token) -> None: ...

    def brokers(self, kafka: KafkaProperties) -> list[str] | None:
        """Their addresses, asked with these properties; None if nobody logs in with them."""
        ...


class JavaTokenAdmin:
    """A client for each request: hours lie between them."""

    def __init__(self, spark: SparkSession, kafka: KafkaProperties) -> None:
        self._admin_class = require_kafka(spark, "a delegation token")
        self._spark = spark
        self._kafka = kafka
        jvm: Any = spark._jvm
        self._classes = jvm.org.apache.kafka.clients.admin

    def create(self, lifetime_ms: int | None) -> Token:
        options = self._classes.CreateDelegationTokenOptions()
        options.maxlifeTimeMs(lifetime_ms or _FOR_AS_LONG_AS_THE_BROKERS_SAY)
        made = self._asked(
            "give a delegation token", lambda admin: admin.createDelegationToken(options).delegationToken()
        )
        about = made.tokenInfo()
        return Token(
            str(about.tokenId()),
            Secret(str(made.hmacAsBase64String())),
            str(about.ownerAsString()),
            int(about.issueTimestamp()),
            int(about.expiryTimestamp()),
            int(about.maxTimestamp()),
        )

    def renew(self, token: Token, period_ms: int) -> int:
        options = self._classes.RenewDelegationTokenOptions().renewTimePeriodMs(period_ms)
        hmac = base64.b64decode(token.hmac.reveal())
        return int(
            self._asked(
                "renew the token", lambda admin: admin.renewDelegationToken(hmac, options).expiryTimestamp()
            )
        )

    def expire(self, token: Token) -> None:
        options = self._classes.ExpireDelegationTokenOptions().expiryTimePeriodMs(_AT_ONCE)
        hmac = base64.b64decode(token.hmac.reveal())
        self._asked(
            "expire the token", lambda admin: admin.expireDelegationToken(hmac, options).expiryTimestamp()
        )

    def brokers(self, kafka: KafkaProperties) -> list[str] | None:
        try:
            nodes = self._client_asked(kafka, lambda admin: admin.describeCluster().nodes())
        except Py4JJavaError as error:
            if cause(error)[0] == _NOT_LOGGED_IN:
                return None
            raise _failed("let the token in", error, kafka) from None
        return [f"{_host(str(node.host()))}:{node.port()}" for node in nodes.toArray()]

    def _asked(self, what: str, ask: Callable[[Any], Any]) -> Any:
        try:
            return self._client_asked(self._kafka, ask)
        except Py4JJavaError as error:
            raise _failed(what, error, self._kafka) from None

    def _client_asked(self, kafka: KafkaProperties, ask: Callable[[Any], Any]) -> Any:
        """What the future holds that `ask` returns."""
        admin = self._admin_class.create(java_properties(self._spark, kafka))
        try:
            return ask(admin).get()
        finally:
            admin.close()


def _host(name: str) -> str:
    return f"[{name}]" if ":" in name else name


def _failed(what: str, error: Py4JJavaError, kafka: KafkaProperties) -> TokenFailed:
    cure = _CURES.get(cause(error)[0])
    said = told(error, kafka) + (f"; {cure}" if cure else "")
    return TokenFailed(f"the brokers at {kafka.bootstrap} did not {what}: {said}")
