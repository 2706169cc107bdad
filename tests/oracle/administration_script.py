"""Configs of groups, ListConfigResources, UpdateFeatures, AlterReplicaLogDirs."""

from __future__ import annotations

from headrace.controller.feature_updates import UpgradeType
from headrace.protocol.messages.alter_configs_request import AlterableConfig as Replaced
from headrace.protocol.messages.alter_configs_request import AlterConfigsRequest
from headrace.protocol.messages.alter_configs_request import AlterConfigsResource as ReplacedResource
from headrace.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.protocol.messages.api_versions_request import ApiVersionsRequest
from headrace.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from headrace.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from tests.oracle.consumer_groups_script import Consumer, wait_for_coordinator, wait_for_topic
from tests.oracle.conversation import Conversation, versions

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND = 0, 1, 2
NAME = "configured-group"
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
INTERVAL = "consumer.assignment.interval.ms"
UPGRADE, SAFE, UNSAFE = UpgradeType


def run(talk: Conversation) -> None:
    _group_configs(talk)
    _effect(talk)
    _replaced(talk)
    _resources(talk)
    _features(talk)
    _directories(talk)


def _asked(name: str, keys: list[str] | None = None, *, synonyms: bool = False) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name=name, configuration_keys=keys)
    return DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms)


def _value(talk: Conversation, config: str) -> str | None:
    value: str | None = talk.quietly(_asked(NAME, [config]), 4).results[0].configs[0].value
    return value


def _group_configs(talk: Conversation) -> None:
    def ask(
        step: str,
        *changes: tuple[str, int, str | None],
        group: str = NAME,
        version: int = 1,
        see: bool = False,
    ) -> None:
        configs = [AlterableConfig(name=name, config_operation=how, value=to) for name, how, to in changes]
        resource = AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=see)
        talk.ask(f"group: {step}", request, version)

    for version in versions(DescribeConfigsRequest):
        talk.ask("describe a group that is not there", _asked("nobody", synonyms=True), version)
    talk.ask("describe some of a group", _asked("nobody", [SESSION, "no.such.config"]), 4)
    talk.ask("describe a group without a name", _asked(""), 4)
    for version in versions(IncrementalAlterConfigsRequest):
        ask("set", (SESSION, SET, f"5000{version}"), version=version)
    ask("set only to see", (SESSION, SET, "46000"), see=True)
    ask("set two", (HEARTBEAT, SET, "7000"), (INTERVAL, SET, "100"))
    ask("too short a session", (SESSION, SET, "44999"))
    ask("too long a session", (SESSION, SET, "60001"))
    ask("too rare heartbeats", (HEARTBEAT, SET, "15001"))
    ask("too frequent heartbeats", (HEARTBEAT, SET, "4999"))
    ask("too long an interval", (INTERVAL, SET, "15001"))
    ask("a negative interval", (INTERVAL, SET, "-1"))
    ask("nonsense", (SESSION, SET, "soon"))
    ask("blanks around a number", (SESSION, SET, " 50001 "), see=True)
    ask("null", (SESSION, SET, None))
    ask("an unknown one", ("no.such.config", SET, "1"))
    ask("an unknown one deleted", ("no.such.config", DELETE, None))
    ask("one of the broker's", ("group.consumer.session.timeout.ms", SET, "50000"))
    ask("append to a number", (SESSION, APPEND, "1"))
    ask("one good and one bad", (SESSION, SET, "55000"), (HEARTBEAT, SET, "1"))
    ask("one twice", (SESSION, SET, "55000"), (SESSION, SET, "56000"))
    ask("of a group without a name", (SESSION, SET, "50000"), group="")
    ask("of a group with a strange name", (SESSION, SET, "50000"), group="not a topic's/name")
    ask("nothing")
    talk.wait_until(lambda: _value(talk, HEARTBEAT) == "7000")
    for version in versions(DescribeConfigsRequest):
        talk.ask("describe a group", _asked(NAME), version)
        talk.ask("describe a group with synonyms", _asked(NAME, synonyms=True), version)


def _effect(talk: Conversation) -> None:
    """The coordinator tells members how often to report."""
    wait_for_coordinator(talk)
    talk.topic("of-configured-groups")
    for group in (NAME, "group-without-configs"):
        wait_for_topic(talk, "of-configured-groups", group)
        member = Consumer(talk, group, "m")
        member.beat("joins", subscribed_topic_names=["of-configured-groups"])
        member.leave("leaves")


def _replaced(talk: Conversation) -> None:
    def ask(step: str, version: int, configs: dict[str, str | None], see: bool = False) -> None:
        changes = [Replaced(name=name, value=value) for name, value in configs.items()]
        resource = ReplacedResource(resource_type=GROUP, resource_name=NAME, configs=changes)
        request = AlterConfigsRequest(resources=[resource], validate_only=see)
        talk.ask(f"group: replace {step}", request, version)

    for version in versions(AlterConfigsRequest):
        ask("all", version, {SESSION: f"5100{version}"})
    ask("all only to see", 2, {}, see=True)
    ask("by nonsense", 2, {SESSION: "soon"})
    ask("by null", 2, {SESSION: None})
    talk.wait_until(lambda: _value(talk, HEARTBEAT) == "5000")
    talk.ask("describe a replaced group", _asked(NAME, synonyms=True), 4)


def _resources(talk: Conversation) -> None:
    talk.ask("resources", ListConfigResourcesRequest(), 0)
    for kinds in (
        [],
        [TOPIC],
        [BROKER],
        [BROKER_LOGGER],
        [CLIENT_METRICS],
        [GROUP],
        [BROKER, GROUP],
        [GROUP, GROUP],
        [0],
        [1],
        [GROUP, 99],
    ):
        talk.ask(f"resources of {kinds}", ListConfigResourcesRequest(resource_types=kinds), 1)


def _levels(talk: Conversation) -> dict[str, int]:
    asked = ApiVersionsRequest(client_software_name="oracle", client_software_version="1")
    return {each.name: each.max_version_level for each in talk.quietly(asked, 3).finalized_features}


def _features(talk: Conversation) -> None:
    level = _levels(talk)["metadata.version"]

    def ask(
        step: str,
        *updates: tuple[str, int],
        how: int = UPGRADE,
        version: int = 2,
        see: bool = False,
        lower: bool = False,
    ) -> None:
        asked = [
            FeatureUpdateKey(
                feature=feature,
                max_version_level=to,
                upgrade_type=how if version else UPGRADE,
                allow_downgrade=lower,
            )
            for feature, to in updates
        ]
        request = UpdateFeaturesRequest(feature_updates=asked, validate_only=see)
        talk.ask(f"features: {step}", request, version)

    metadata, transaction = "metadata.version", "transaction.version"
    for version in versions(UpdateFeaturesRequest):
        ask("no change", (transaction, 2), version=version)
        ask("no change of two", (transaction, 2), (metadata, level), version=version)
        ask("an unknown one", ("no.such.feature", 1), version=version)
        ask("one good and one bad", (transaction, 2), ("no.such.feature", 1), version=version)
    ask("nothing")
    ask("lower by version 0", (transaction, 1), version=0)
    ask("lower the metadata by version 0", (metadata, 1), version=0, lower=True)
    ask("no change, only to see", (transaction, 2), see=True)
    ask("one that does not exist yet", (transaction, 3))
    ask("a negative one", (transaction, -1))
    ask("lower by an upgrade", (transaction, 1))
    ask("lower to nothing by an upgrade", (transaction, 0))
    ask("raise by a downgrade", (transaction, 3), how=SAFE)
    ask("lower, only to see", (transaction, 1), how=SAFE, see=True)
    ask("metadata of the far future", (metadata, 9999))
    ask("metadata of the past", (metadata, 1), how=SAFE)
    ask("metadata of the past, unsafely", (metadata, 1), how=UNSAFE)
    ask("no metadata", (metadata, 0), how=UNSAFE)
    ask("an unknown one at 0", ("no.such.feature", 0))
    for how in (0, 4, -1):
        ask(f"by type {how}", (transaction, 2), how=how)
    talk.note("levels", metadata=_levels(talk)[metadata] == level, transaction=_levels(talk)[transaction])


def _directories(talk: Conversation) -> None:
    talk.topic("placed", 2)
    here = str(talk.broker.log_dir)

    def ask(
        step: str, path: str, topic: str, *partitions: int, version: int = 2, then: str | None = None
    ) -> None:
        topics = [AlterReplicaLogDirTopic(name=topic, partitions=list(partitions))]
        paths = [path] if then is None else [path, then]
        dirs = [AlterReplicaLogDir(path=each, topics=topics) for each in paths]
        talk.ask(f"directory: {step}", AlterReplicaLogDirsRequest(dirs=dirs), version)

    for version in versions(AlterReplicaLogDirsRequest):
        ask("where it is", here, "placed", 0, version=version)
        ask("one that does not exist", "/nowhere", "placed", 0, version=version)
        ask("of an unknown topic", here, "placed-nowhere", 0, version=version)
    ask("of an unknown partition", here, "placed", 7)
    ask("of a negative partition", here, "placed", -1)
    ask("of a bad name", here, "not a name", 0)
    ask("of a bad name, nowhere", "/nowhere", "not a name", 0)
    for length in (212, 213, 214):
        ask(f"of a name of {length} letters", here, "x" * length, 0, 10)
    ask("of a long name, nowhere", "/nowhere", "x" * 214, 0)
    ask("of an empty name", here, "", 0)
    ask("empty", "", "placed", 0)
    ask("relative", "logs", "placed", 0)
    ask("twice", "/nowhere", "placed", 0, then=here)
    ask("twice, the other way", here, "placed", 0, then="/nowhere")
    talk.ask("directory: nothing", AlterReplicaLogDirsRequest(), 2)
    talk.topic("placed-nowhere")
    ask("of a topic that was asked for before", here, "placed-nowhere", 0)
