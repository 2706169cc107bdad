"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, and what the cluster tells of itself."""

from __future__ import annotations

from headrace.protocol.messages.alter_configs_request import AlterableConfig as Replaced
from headrace.protocol.messages.alter_configs_request import AlterConfigsRequest
from headrace.protocol.messages.alter_configs_request import AlterConfigsResource as ReplacedResource
from headrace.protocol.messages.api_versions_request import ApiVersionsRequest
from headrace.protocol.messages.describe_cluster_request import DescribeClusterRequest
from headrace.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.protocol.messages.describe_log_dirs_request import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from headrace.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker_process import BROKER_ID
from tests.oracle.conversation import Conversation, versions
from tests.oracle.produce_script import batch, produce_request

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
NAME = "configured-topic"


def run(talk: Conversation) -> None:
    talk.topic(NAME, 1, retention_ms="100000", cleanup_policy="compact")
    _describe(talk)
    _incremental(talk)
    _replace(talk)
    _brokers(talk)
    _cluster(talk)


def _asked(
    kind: int,
    name: str,
    keys: list[str] | None = None,
    *,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    return DescribeConfigsRequest(
        resources=[resource], include_synonyms=synonyms, include_documentation=documentation
    )


def _describe(talk: Conversation) -> None:
    for version in versions(DescribeConfigsRequest):
        talk.ask("describe a topic", _asked(TOPIC, NAME), version)
        talk.ask("describe a topic with synonyms", _asked(TOPIC, NAME, synonyms=True), version)
        keys = ["retention.ms", "no.such.config", "segment.bytes"]
        talk.ask("describe some of a topic", _asked(TOPIC, NAME, keys), version)
        talk.ask("describe the broker", _asked(BROKER, str(BROKER_ID), synonyms=True), version)
    talk.ask("describe nothing of a topic", _asked(TOPIC, NAME, []), 4)
    talk.ask("describe with documentation", _asked(TOPIC, NAME, ["retention.ms"], documentation=True), 4)
    talk.ask("describe an unknown topic", _asked(TOPIC, "nowhere"), 4)
    talk.ask("describe a bad name", _asked(TOPIC, "not a name"), 4)
    talk.ask("describe another broker", _asked(BROKER, "77"), 4)
    talk.ask("describe no broker", _asked(BROKER, "one"), 4)
    talk.ask("describe all brokers", _asked(BROKER, ""), 4)
    for kind in (0, 1, 3, 99):
        talk.ask(f"describe kind {kind}", _asked(kind, "x"), 4)


def _incremental(talk: Conversation) -> None:
    def ask(
        step: str,
        *changes: tuple[str, int, str | None],
        topic: str = NAME,
        version: int = 1,
        see: bool = False,
    ) -> None:
        configs = [
            AlterableConfig(name=name, config_operation=how, value=value) for name, how, value in changes
        ]
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=configs)
        talk.ask(
            f"change {step}", IncrementalAlterConfigsRequest(resources=[resource], validate_only=see), version
        )

    for version in versions(IncrementalAlterConfigsRequest):
        ask("set", ("retention.ms", SET, f"20000{version}"), version=version)
    ask("set only to see", ("retention.ms", SET, "5"), see=True)
    ask("delete", ("segment.bytes", DELETE, None))
    ask("append", ("cleanup.policy", APPEND, "delete"))
    ask("append what is there", ("cleanup.policy", APPEND, "delete"))
    ask("subtract", ("cleanup.policy", SUBTRACT, "compact"))
    ask("subtract what is not there", ("cleanup.policy", SUBTRACT, "compact"))
    ask("append to a number", ("retention.ms", APPEND, "1"))
    ask("set to null", ("retention.ms", SET, None))
    ask("set to nonsense", ("retention.ms", SET, "soon"))
    ask("set an unknown one", ("no.such.config", SET, "1"))
    ask("delete an unknown one", ("no.such.config", DELETE, None))
    ask("set one twice", ("retention.ms", SET, "1000"), ("retention.ms", SET, "2000"))
    ask("set two", ("retention.ms", SET, "300000"), ("max.message.bytes", SET, "5000"))
    ask("one good and one bad", ("retention.ms", SET, "400000"), ("max.message.bytes", SET, "many"))
    ask("by an unknown operation", ("retention.ms", 9, "1"))
    ask("an unknown topic", ("retention.ms", SET, "1000"), topic="nowhere")
    ask("a bad name", ("retention.ms", SET, "1000"), topic="not a name")
    ask("nothing")
    ask("an empty name", ("", SET, "1"))
    talk.wait_until(lambda: _value(talk, "max.message.bytes") == "5000")
    talk.ask("describe what was changed", _asked(TOPIC, NAME), 4)


def _value(talk: Conversation, name: str) -> str | None:
    answer = talk.quietly(_asked(TOPIC, NAME, [name]), 4)
    value: str | None = answer.results[0].configs[0].value
    return value


def _replace(talk: Conversation) -> None:
    def ask(step: str, version: int, see: bool = False, **configs: str | None) -> None:
        changes = [Replaced(name=name.replace("_", "."), value=value) for name, value in configs.items()]
        resource = ReplacedResource(resource_type=TOPIC, resource_name=NAME, configs=changes)
        talk.ask(f"replace {step}", AlterConfigsRequest(resources=[resource], validate_only=see), version)

    for version in versions(AlterConfigsRequest):
        ask("all", version, retention_ms=f"60000{version}", segment_bytes="2097152")
    ask("all only to see", 2, True, retention_ms="1")
    ask("by nonsense", 2, retention_ms="soon")
    ask("by an unknown one", 2, no_such_config="1")
    ask("by null", 2, retention_ms=None)
    talk.wait_until(lambda: _value(talk, "retention.ms") == "600002")
    talk.ask("describe what was replaced", _asked(TOPIC, NAME), 4)


def _brokers(talk: Conversation) -> None:
    def ask(step: str, broker: str, name: str, value: str | None, how: int = SET) -> None:
        change = AlterableConfig(name=name, config_operation=how, value=value)
        resource = AlterConfigsResource(resource_type=BROKER, resource_name=broker, configs=[change])
        talk.ask(f"change {step}", IncrementalAlterConfigsRequest(resources=[resource]), 1)

    here = str(BROKER_ID)
    ask("one broker", here, "log.retention.ms", "7200000")
    ask("all brokers", "", "log.retention.ms", "3600000")
    ask("a broker by nonsense", here, "log.retention.ms", "soon")
    ask("a broker's unknown property", here, "no.such.property", "1")
    ask("what cannot change", here, "log.dirs", "/tmp/elsewhere")
    ask("another broker", "77", "log.retention.ms", "1000")
    ask("no broker", "one", "log.retention.ms", "1000")

    def effective() -> bool:
        answer = talk.quietly(_asked(BROKER, here, ["log.retention.ms"]), 4)
        return bool(answer.results[0].configs[0].value == "7200000")

    talk.wait_until(effective)
    talk.wait_until(lambda: _value_of(talk, "configured-plain") == "7200000")
    keys = ["log.retention.ms", "log.retention.hours", "log.dirs"]
    talk.ask("describe a changed broker", _asked(BROKER, here, keys, synonyms=True), 4)
    talk.ask("describe changed defaults", _asked(BROKER, "", synonyms=True), 4)
    inherited = _asked(TOPIC, "configured-plain", ["retention.ms"], synonyms=True)
    talk.ask("describe what a topic inherits", inherited, 4)
    ask("one broker back", here, "log.retention.ms", None, DELETE)
    ask("all brokers back", "", "log.retention.ms", None, DELETE)


def _value_of(talk: Conversation, topic: str) -> str | None:
    if talk.metadata(topic).error_code:
        talk.topic(topic)
    answer = talk.quietly(_asked(TOPIC, topic, ["retention.ms"]), 4)
    value: str | None = answer.results[0].configs[0].value
    return value


def _cluster(talk: Conversation) -> None:
    for version in versions(ApiVersionsRequest):
        request = ApiVersionsRequest(client_software_name="oracle", client_software_version="1")
        talk.ask("versions", request, version)
    talk.ask("versions for a client without a name", ApiVersionsRequest(), 3)
    bad = ApiVersionsRequest(client_software_name="not allowed!", client_software_version="1")
    talk.ask("versions for a client with a bad name", bad, 3)
    for version in versions(DescribeClusterRequest):
        talk.ask("the cluster", DescribeClusterRequest(), version)
        talk.ask(
            "the cluster with operations",
            DescribeClusterRequest(include_cluster_authorized_operations=True),
            version,
        )
    talk.ask("the controllers", DescribeClusterRequest(endpoint_type=2), 2)
    talk.ask("endpoints of kind 9", DescribeClusterRequest(endpoint_type=9), 2)
    talk.topic("sized", 2)
    talk.quietly(produce_request("sized", batch(b"x" * 1000)), 9)
    for version in versions(DescribeLogDirsRequest):
        for step, topics in (
            ("one topic", [DescribableLogDirTopic(topic="sized", partitions=[0, 1])]),
            ("one partition", [DescribableLogDirTopic(topic="sized", partitions=[0])]),
            ("strangers", [DescribableLogDirTopic(topic="nowhere", partitions=[0])]),
            ("nothing", []),
        ):
            talk.ask(f"log dirs of {step}", DescribeLogDirsRequest(topics=topics), version)
