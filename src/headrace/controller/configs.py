"""Dynamic configuration of topics, groups and brokers: what may be set, and the records that set it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from headrace.config.tiering import FORK
from headrace.controller import links
from headrace.controller.image import DEFAULT_BROKER, ConfigResource, MetadataImage, ResourceType
from headrace.controller.operations import AlteredConfig, ConfigChange, ConfigOp, RecordGroup, Result
from headrace.controller.topic_names import check_topic_name
from headrace.core.errors import (
    HeadraceError,
    InvalidConfig,
    InvalidRequest,
    UnknownTopicOrPartition,
)
from headrace.protocol.stored.config_record import ConfigRecord

T = TypeVar("T")

_MIN_INSYNC_REPLICAS = "min.insync.replicas"


class ConfigSchema(Protocol):
    """The properties that exist, as far as the controller has to know them. Raises InvalidConfig."""

    def check_topic(self, overrides: Mapping[str, str], before: Mapping[str, str] = ...) -> None:
        """All overrides of one topic, together: some are only wrong beside another, or after what it had
        before."""
        ...

    def check_group(self, overrides: Mapping[str, str]) -> None:
        """All overrides of one group, likewise."""
        ...

    def check_broker(self, values: Mapping[str, str], changed: Iterable[str], *, cluster_wide: bool) -> None:
        """All dynamic values of one broker (or of all brokers), of which `changed` are being set."""
        ...

    def is_list(self, resource_type: int, name: str) -> bool: ...

    def default(self, resource_type: int, name: str) -> str | None:
        """What holds where nothing was set: the starting point of APPEND and SUBTRACT."""
        ...


def check_new_topic(schema: ConfigSchema, configs: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, value in configs:
        if value is None:
            raise InvalidConfig(f"{name} has no value")
        if name in values:
            raise InvalidConfig(f"{name} is given twice")
        values[name] = value
    schema.check_topic(values)
    return values


def set_topic_configs(topic: str, values: Mapping[str, str]) -> Iterable[ConfigRecord]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return [_record(resource, name, value) for name, value in values.items()]


def incremental_alter_configs(
    image: MetadataImage,
    changes: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]],
    *,
    schema: ConfigSchema,
) -> Result[list[AlteredConfig]]:
    def amend(resource: ConfigResource, wanted: Sequence[ConfigChange]) -> dict[str, str | None]:
        _once("config", [change.name for change in wanted])
        if resource.type == ResourceType.LINK:
            return links.completed(image, resource.name, links.amended(image, resource.name, wanted))
        current = image.configs(resource)
        return {c.name: _amended(resource, c, current.get(c.name), schema) for c in wanted}

    result = _alter(image, changes, amend, schema)
    of_links = [
        change for resource, wanted in changes if resource.type == ResourceType.LINK for change in wanted
    ]
    if of_links and result.groups:
        result.groups[0][:0] = links.records_beside(image, of_links)
    return result


def alter_configs(
    image: MetadataImage,
    resources: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]],
    *,
    schema: ConfigSchema,
) -> Result[list[AlteredConfig]]:
    """The older form: the values given are all there shall be; every other one is removed."""

    def replace(resource: ConfigResource, wanted: Sequence[tuple[str, str | None]]) -> dict[str, str | None]:
        if resource.type == ResourceType.LINK:
            raise InvalidRequest("values of a link are altered one by one")
        _once("config", [name for name, _ in wanted])
        values: dict[str, str | None] = dict.fromkeys(image.configs(resource))
        if resource == DEFAULT_BROKER:
            values.pop(_MIN_INSYNC_REPLICAS, None)  # it cannot be removed: not to name it leaves it
        values.pop(FORK, None)
        for name, value in wanted:
            if value is None:
                raise InvalidRequest(f"{name} has no value")
            values[name] = value
        return values

    return _alter(image, resources, replace, schema)


def _alter(
    image: MetadataImage,
    asked: Sequence[tuple[ConfigResource, T]],
    decide: Callable[[ConfigResource, T], dict[str, str | None]],
    schema: ConfigSchema,
) -> Result[list[AlteredConfig]]:
    groups: list[RecordGroup] = []
    outcomes: list[AlteredConfig] = []
    named = Counter(resource for resource, _ in asked)
    for resource in named:
        if named[resource] > 1:
            error = InvalidRequest(f"resource {resource.name!r} is listed twice")
            outcomes.append(AlteredConfig(resource, error))
    for resource, wanted in asked:
        if named[resource] > 1:
            continue
        try:
            _check_exists(image, resource)
            values = decide(resource, wanted)
            _keep_fork(resource, values, image.configs(resource))
            _check_values(image, resource, values, schema)
        except HeadraceError as error:
            outcomes.append(AlteredConfig(resource, error))
            continue
        current = image.configs(resource)
        group: RecordGroup = [
            _record(resource, name, value) for name, value in values.items() if current.get(name) != value
        ]
        if group:
            groups.append(group)
        outcomes.append(AlteredConfig(resource))
    return Result(groups, outcomes)


def _keep_fork(resource: ConfigResource, values: dict[str, str | None], current: Mapping[str, str]) -> None:
    """What a topic was made as is no setting."""
    if resource.type == ResourceType.TOPIC and FORK in values and values[FORK] != current.get(FORK):
        raise InvalidConfig(f"{FORK} says what the topic was made as: it cannot be changed")


def _check_exists(image: MetadataImage, resource: ConfigResource) -> None:
    if resource.type == ResourceType.TOPIC:
        if resource.name not in image.topics_by_name:
            check_topic_name(resource.name)
            raise UnknownTopicOrPartition(f"there is no topic {resource.name!r}")
    elif resource.type == ResourceType.BROKER:
        if not resource.name:
            return
        if not (resource.name.isascii() and resource.name.isdigit()):
            raise InvalidRequest(f"broker {resource.name!r}: give the id as a number, or nothing for all")
        if int(resource.name) not in image.brokers:
            # The code that Kafka gives: a client has to address the broker whose values it changes.
            raise InvalidRequest(f"there is no broker {resource.name}")
    elif resource.type == ResourceType.GROUP:
        # It need not have members yet. What holds for all groups is a broker's.
        if not resource.name:
            raise InvalidRequest("a group has a name; for all groups, set the broker's group.consumer.*")
    elif resource.type == ResourceType.LINK:
        check_topic_name(resource.name)  # it may come before its topic
    else:
        raise InvalidRequest(f"resources of type {int(resource.type)} have no stored configuration")


def _amended(
    resource: ConfigResource, change: ConfigChange, current: str | None, schema: ConfigSchema
) -> str | None:
    if change.op == ConfigOp.DELETE:
        return None
    if change.value is None:
        raise InvalidRequest(f"{change.name} has no value")
    if change.op == ConfigOp.SET:
        return change.value
    if change.op not in (ConfigOp.APPEND, ConfigOp.SUBTRACT):
        raise InvalidRequest(f"{change.op} is no operation on a config")
    if not schema.is_list(resource.type, change.name):
        raise InvalidConfig(f"{change.name} is no list: it can be set or deleted")
    before = schema.default(resource.type, change.name) if current is None else current
    items = _items(before or "")
    for item in _items(change.value):
        if change.op == ConfigOp.APPEND and item not in items:
            items.append(item)
        elif change.op == ConfigOp.SUBTRACT and item in items:
            items.remove(item)
    return ",".join(items)


def _items(value: str) -> list[str]:
    return [item.strip() for item in value.split(",") if item.strip()]


def _check_values(
    image: MetadataImage,
    resource: ConfigResource,
    changed: Mapping[str, str | None],
    schema: ConfigSchema,
) -> None:
    if resource.type == ResourceType.LINK:
        return  # links.py has checked each
    values: dict[str, str | None] = {**image.configs(resource), **changed}
    after = {name: value for name, value in values.items() if value is not None}
    if resource.type == ResourceType.TOPIC:
        schema.check_topic(after, image.configs(resource))
        return
    if resource.type == ResourceType.GROUP:
        schema.check_group(after)
        return
    if resource.name and changed.get(_MIN_INSYNC_REPLICAS) is not None:
        # As Kafka: who is eligible to lead depends on it, whoever leads.
        raise InvalidConfig(f"{_MIN_INSYNC_REPLICAS} cannot differ by broker; set it for all, or for a topic")
    if not resource.name and _MIN_INSYNC_REPLICAS not in after and _MIN_INSYNC_REPLICAS in changed:
        # As Kafka. Without it each broker would go by its own file: a leader could acknowledge what the
        # controller does not ask an heir to have.
        raise InvalidConfig(f"{_MIN_INSYNC_REPLICAS} of the cluster cannot be removed, only changed")
    schema.check_broker(after, changed, cluster_wide=not resource.name)


def _once(noun: str, names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidRequest(f"{noun} {name} is listed {count} times")


def _record(resource: ConfigResource, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
