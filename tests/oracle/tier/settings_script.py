"""Settings of tiered topics that make no sense, or that need another one first."""

from __future__ import annotations

from headrace.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.oracle.conversation import Conversation

_TOPIC = 2
_SET = 0


def alter(talk: Conversation, step: str, topic: str, **settings: str) -> None:
    changes = [
        AlterableConfig(name=name.replace("_", "."), config_operation=_SET, value=value)
        for name, value in settings.items()
    ]
    resource = AlterConfigsResource(resource_type=_TOPIC, resource_name=topic, configs=changes)
    talk.ask(step, IncrementalAlterConfigsRequest(resources=[resource]), 1)


def run(talk: Conversation) -> None:
    talk.topic("set", remote_storage_enable="true", retention_ms="100000", retention_bytes="100000000")
    talk.topic("plain")
    talk.topic("compacted", cleanup_policy="compact")
    for name, value in (
        ("local_retention_ms", "100001"),
        ("local_retention_ms", "-1"),
        ("local_retention_ms", "-3"),
        ("local_retention_ms", "0"),
        ("local_retention_ms", "-2"),
        ("local_retention_bytes", "100000001"),
        ("local_retention_bytes", "-1"),
        ("local_retention_bytes", "1"),
        ("local_retention_bytes", "-2"),
        ("cleanup_policy", "compact"),
        ("cleanup_policy", "compact,delete"),
        ("remote_storage_enable", "perhaps"),
        ("remote_storage_enable", "false"),
        ("remote_log_copy_disable", "true"),
        ("remote_log_copy_disable", "false"),
        ("retention_ms", "-1"),
        ("retention_bytes", "-1"),
    ):
        alter(talk, f"set {name}={value}", "set", **{name: value})
    for topic in ("plain", "compacted"):
        alter(talk, f"{topic} becomes tiered", topic, remote_storage_enable="true")
        alter(talk, f"{topic} copies nothing", topic, remote_log_copy_disable="true")
        alter(talk, f"{topic} keeps little", topic, local_retention_bytes="1")
    alter(
        talk, "history is given up", "set", remote_storage_enable="false", remote_log_delete_on_disable="true"
    )
    alter(talk, "tiered again", "set", remote_storage_enable="true")
    _created(talk, "none", remote_storage_enable="true", cleanup_policy="compact")
    _created(talk, "both", remote_storage_enable="true", cleanup_policy="compact,delete")
    _created(talk, "long", remote_storage_enable="true", retention_ms="10", local_retention_ms="11")
    _created(talk, "large", remote_storage_enable="true", retention_bytes="10", local_retention_bytes="11")
    _created(talk, "copies", remote_log_copy_disable="true")
    _created(talk, "copies-not", remote_storage_enable="true", remote_log_copy_disable="true")
    _created(talk, "deletes", remote_log_delete_on_disable="true")


def _created(talk: Conversation, name: str, **settings: str) -> None:
    configs = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()
    ]
    topic = CreatableTopic(name=f"new-{name}", num_partitions=1, replication_factor=1, configs=configs)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=True)
    talk.ask(f"a new topic: {name}", request, 4)
