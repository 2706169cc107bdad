"""Delegation tokens as Spark's connector has them, on a cluster where Spark itself makes none.

Spark makes them for users of Kerberos, on YARN and Kubernetes. What it does there is done here by hand: its
provider makes a token, its scheduler sends that to all executors, and its connector finds it by the addresses
of the brokers.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from headrace.config.secret import Secret
from headrace.spark import KafkaProperties
from headrace.spark.tokens.admin import JavaTokenAdmin
from headrace.spark.tokens.known import await_known
from headrace.spark.tokens.properties import token_properties

_CLUSTER: Final = "spark.kafka.clusters.secured."
_SERVICE: Final = "kafka.server.delegation.token.secured"
_MECHANISM: Final = "SCRAM-SHA-512"
_SHARED: Final = ("security.protocol",)
"""Everything else of the driver's properties stays with the driver."""


def settings(kafka: KafkaProperties) -> dict[str, str]:
    """What driver and executors are to know of the cluster when the session starts."""
    return {
        f"{_CLUSTER}auth.bootstrap.servers": kafka.bootstrap,
        f"{_CLUSTER}target.bootstrap.servers.regex": ".*",
        f"{_CLUSTER}sasl.token.mechanism": _MECHANISM,
        **{_CLUSTER + name: kafka[name] for name in _SHARED},
    }


def made_by_spark(spark: SparkSession) -> bool:
    """Whether the session's scheduler would make tokens by itself, for whomever it works."""
    return not _scheduler(spark).createTokenManager().isEmpty()


def hand_out(spark: SparkSession, kafka: KafkaProperties, bootstrap: str) -> None:
    """A token of whoever logs in with these properties, to the driver and all executors.

    `bootstrap` is where it will be used. Apache Kafka's brokers do not know of it at once.
    """
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext._jsc.sc()
    conf = context.conf().clone()
    for name, value in kafka.items():
        if name.startswith("ssl."):
            conf.set(_CLUSTER + name, value)
    credentials = jvm.org.apache.hadoop.security.Credentials()
    provider = jvm.org.apache.spark.kafka010.KafkaDelegationTokenProvider()
    provider.obtainDelegationTokens(context.hadoopConfiguration(), conf, credentials)
    assert credentials.numberOfTokens() == 1, "the provider made no token: the driver's log says why"
    made = credentials.getToken(jvm.org.apache.hadoop.io.Text(_SERVICE))
    token_id, hmac = (bytes(each).decode() for each in (made.getIdentifier(), made.getPassword()))
    login = token_properties(kafka, token_id, Secret(hmac), bootstrap=bootstrap, mechanism=_MECHANISM)
    await_known(JavaTokenAdmin(spark, kafka), login)
    written = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().serialize(credentials)
    _scheduler(spark).updateDelegationTokens(written)


def read(spark: SparkSession, kafka: KafkaProperties, topic: str) -> DataFrame:
    """By the connector, which is told where the brokers are and whom to trust, and not who it is."""
    told = {name: value for name, value in kafka.options.items() if ".sasl." not in name}
    return spark.read.format("kafka").options(**told).option("subscribe", topic).load()


def _scheduler(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.sc().schedulerBackend()
