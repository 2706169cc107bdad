"""The configuration of one broker: the declarations together, and text turned into values."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn, Self

from headrace.config import listeners as addresses
from headrace.config.broker_properties.authentication import AuthenticationProperties
from headrace.config.broker_properties.authorization import AuthorizationProperties
from headrace.config.broker_properties.balancing import BalancingProperties
from headrace.config.broker_properties.cleaner import CleanerProperties
from headrace.config.broker_properties.cluster import ReplicationProperties, TopicCreationProperties
from headrace.config.broker_properties.consumer_groups import ConsumerGroupProperties
from headrace.config.broker_properties.delegation_tokens import DelegationTokenProperties
from headrace.config.broker_properties.groups import GroupProperties
from headrace.config.broker_properties.identity import IdentityProperties
from headrace.config.broker_properties.internal_topics import InternalTopicProperties
from headrace.config.broker_properties.kerberos import KerberosProperties
from headrace.config.broker_properties.links import LinkProperties
from headrace.config.broker_properties.memory import MemoryProperties
from headrace.config.broker_properties.metrics import MetricsProperties
from headrace.config.broker_properties.network import NetworkProperties
from headrace.config.broker_properties.oauth import OAuthProperties
from headrace.config.broker_properties.offsets import OffsetProperties
from headrace.config.broker_properties.storage import StorageProperties
from headrace.config.broker_properties.tiered_storage import TieredStorageProperties
from headrace.config.broker_properties.tls import TlsListenerProperties
from headrace.config.broker_properties.transactions import TransactionProperties
from headrace.config.broker_properties.zookeeper import ZooKeeperProperties
from headrace.config.consumer_group_bounds import check_consumer_groups
from headrace.config.http_listener import HttpListener, Words, http_listener
from headrace.config.kraft_file import check_quorum
from headrace.config.listener_security import (
    ListenerSecurity,
    listener_security,
    require_known_listeners,
)
from headrace.config.listeners import Listener
from headrace.config.property import Property, Status, UpdateMode
from headrace.config.protection import require_known_protection, scope_of
from headrace.config.security_checks import check_protection, exposure
from headrace.config.zookeeper_address import ZooKeeperAddress, parse_zookeeper_connect
from headrace.config.zookeeper_security import ZooKeeperSecurity, zookeeper_security
from headrace.core.errors import ConfigError

_GROUPS: tuple[type, ...] = (
    IdentityProperties,
    ZooKeeperProperties,
    NetworkProperties,
    MemoryProperties,
    StorageProperties,
    TieredStorageProperties,
    CleanerProperties,
    TopicCreationProperties,
    ReplicationProperties,
    BalancingProperties,
    InternalTopicProperties,
    GroupProperties,
    ConsumerGroupProperties,
    OffsetProperties,
    TransactionProperties,
    LinkProperties,
    TlsListenerProperties,
    AuthenticationProperties,
    OAuthProperties,
    KerberosProperties,
    AuthorizationProperties,
    DelegationTokenProperties,
    MetricsProperties,
)
_METRICS: Final = Words(
    "METRICS", "headrace.metrics.listener", "headrace.metrics.authentication", "headrace.metrics.token.file"
)

BROKER_PROPERTIES: dict[str, Property[object]] = {
    declared.name: declared
    for group in _GROUPS
    for declared in vars(group).values()
    if isinstance(declared, Property)
}

ALIASES: dict[str, str] = {
    alias: declared.name for declared in BROKER_PROPERTIES.values() for alias in declared.aliases
}


class BrokerConfig(
    IdentityProperties,
    ZooKeeperProperties,
    NetworkProperties,
    MemoryProperties,
    StorageProperties,
    TieredStorageProperties,
    CleanerProperties,
    TopicCreationProperties,
    ReplicationProperties,
    BalancingProperties,
    InternalTopicProperties,
    GroupProperties,
    ConsumerGroupProperties,
    OffsetProperties,
    TransactionProperties,
    LinkProperties,
    TlsListenerProperties,
    AuthenticationProperties,
    OAuthProperties,
    KerberosProperties,
    AuthorizationProperties,
    DelegationTokenProperties,
    MetricsProperties,
):
    """Values as attributes (`config.log_segment_bytes`) and by name (`config["log.segment.bytes"]`).

    It never changes after `parse`; a change at run time makes another one, by `with_dynamic`.
    """

    bound_listeners: tuple[Listener, ...]
    """What to bind, from listeners or from the old port and host.name."""
    advertised: tuple[Listener, ...]
    """What clients are told. A port of 0 stands for the port that was bound under the same name."""
    inter_broker_listener: Listener
    """What other brokers are told to use: one of advertised."""
    listener_security: dict[str, ListenerSecurity]
    """Of each bound listener, by its name, and of METRICS where that has TLS."""
    zookeeper: ZooKeeperAddress | None
    """zookeeper.connect; None for a broker that is a cluster of its own."""
    zookeeper_security: ZooKeeperSecurity
    """How it is spoken to."""
    data_directories: tuple[str, ...]
    """log.dirs, or else log.dir."""
    metrics: HttpListener | None
    """Where metrics are served. Its TLS is in listener_security too, and so is reloaded with the others."""
    given: dict[str, str]
    """The properties that the file sets, under their current names, as they were written."""
    warnings: tuple[str, ...]
    """What the operator should be told at the start."""

    @classmethod
    def parse(cls, mapping: Mapping[str, str]) -> Self:
        """ConfigError names the property and says what to do."""
        require_known_protection(mapping, BROKER_PROPERTIES)
        warnings: list[str] = []
        given = _under_current_names(mapping, warnings)
        values: dict[str, Any] = {}
        for name, declared in BROKER_PROPERTIES.items():
            values[declared.attribute] = declared.default
            if name in given:
                try:
                    values[declared.attribute] = declared.parse(given[name])
                except ValueError as error:
                    raise ConfigError(str(error)) from None
                if declared.status is Status.LATER:
                    warnings.append(f"{name} is accepted, but Headrace does not use it yet")
        config = cls.__new__(cls)
        config.__dict__.update(values, given=given)
        config.__dict__.update(_identity(config))
        config.__dict__.update(_addresses(config))
        config.__dict__["metrics"] = _metrics(config, mapping)
        config.__dict__["listener_security"] = _security(config, mapping)
        config.__dict__["inter_broker_listener"] = _inter_broker_listener(config)
        config.__dict__["zookeeper"] = parse_zookeeper_connect(config.zookeeper_connect)
        config.__dict__["zookeeper_security"] = zookeeper_security(config)
        if config.zookeeper is None:
            warnings.extend(_quorum(config, mapping))
        config.__dict__.update(_directories(config, warnings))
        _check_together(config)
        check_protection(config)
        warnings.extend(exposure(config))
        config.__dict__["warnings"] = tuple(warnings)
        return config

    def with_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> Self:
        """This configuration with what was set at run time: for the cluster, and above it for this broker.

        A stored value that cannot be read, or that may not change at run time, is passed over: a broker
        must be able to start whatever another version once stored.
        """
        changed = type(self).__new__(type(self))
        changed.__dict__.update(self.__dict__)
        for layer in (default, broker):
            for name, text in layer.items():
                declared = BROKER_PROPERTIES.get(name)
                if declared is None or declared.update is UpdateMode.READ_ONLY:
                    continue
                try:
                    changed.__dict__[declared.attribute] = declared.parse(text)
                except ValueError:
                    continue
        return changed

    def security_of(self, listener: str) -> ListenerSecurity:
        return self.listener_security[listener]

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[BROKER_PROPERTIES[ALIASES.get(name, name)].attribute]

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a BrokerConfig does not change; make another one")


def _under_current_names(mapping: Mapping[str, str], warnings: list[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, text in mapping.items():
        current = ALIASES.get(name, name)
        if current not in BROKER_PROPERTIES:
            if scope_of(name) is not None:
                continue  # of one listener, and read with it
            warnings.append(f"unknown property {name} is ignored{_hint(name)}")
        elif current != name and current in mapping:
            warnings.append(f"{name} is another name of {current}, which is also set and counts")
        else:
            given[current] = text
    return given


def require_known(names: Iterable[str]) -> None:
    """For those who would rather stop than go on without a property. Raises ConfigError."""
    for name in names:
        if ALIASES.get(name, name) not in BROKER_PROPERTIES:
            raise ConfigError(f"unknown property {name}{_hint(name)}")


def _hint(name: str) -> str:
    near = nearest(name, [*BROKER_PROPERTIES, *ALIASES])
    return f"; did you mean {near}?" if near else ""


def nearest(name: str, known: list[str]) -> str | None:
    """The known name that `name` was probably meant to be."""
    matches = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    return matches[0] if matches else None


def _identity(config: BrokerConfig) -> dict[str, int]:
    broker_id, node_id = config.broker_id, config.__dict__["node_id"]
    if broker_id >= 0 and node_id is not None and broker_id != node_id:
        raise ConfigError(f"broker.id={broker_id} and node.id={node_id} differ; remove one of them")
    identity = node_id if node_id is not None else max(broker_id, 0)
    if node_id is not None or broker_id >= 0:
        # The two names are one property: whichever was written, both are described as set.
        config.given["broker.id"] = config.given["node.id"] = str(identity)
    return {"broker_id": identity, "node_id": identity}


def _addresses(config: BrokerConfig) -> dict[str, Any]:
    protocols = addresses.parse_protocol_map(config.listener_security_protocol_map)
    reserved = {name.upper() for name in config.controller_listener_names}
    items = config.listeners
    if "listeners" not in config.given and (config.port is not None or config.host_name is not None):
        port = 9092 if config.port is None else config.port
        items = (f"PLAINTEXT://{config.host_name or ''}:{port}",)
    bound = addresses.parse_listeners("listeners", _not_reserved(items, reserved), protocols)
    addresses.check_distinct_ports(bound)
    told_items = config.advertised_listeners
    if told_items is None and (config.advertised_host_name or config.advertised_port is not None):
        first = bound[0]
        port = first.port if config.advertised_port is None else config.advertised_port
        told_items = (f"{first.name}://{config.advertised_host_name or first.host}:{port}",)
    if told_items is None:
        told = addresses.advertised_of(bound)
    else:
        told = addresses.parse_listeners(
            "advertised.listeners", _not_reserved(told_items, reserved), protocols
        )
        addresses.advertised_of(told)
        unbound = {listener.name for listener in told} - {listener.name for listener in bound}
        if unbound:
            raise ConfigError(f"advertised.listeners: listeners has no {', '.join(sorted(unbound))}")
    return {
        "bound_listeners": bound,
        "advertised": told,
    }


def _security(config: BrokerConfig, mapping: Mapping[str, str]) -> dict[str, ListenerSecurity]:
    metrics = config.metrics
    reserved = {*config.controller_listener_names, *([] if metrics is None else [metrics.name])}
    require_known_listeners(mapping, config.bound_listeners, reserved)
    found = {listener.name: listener_security(listener, mapping) for listener in config.bound_listeners}
    if metrics is not None and metrics.security is not None:
        found[metrics.name] = metrics.security
    return found


def _metrics(config: BrokerConfig, mapping: Mapping[str, str]) -> HttpListener | None:
    found = http_listener(
        _METRICS,
        config.headrace_metrics_listener,
        config.headrace_metrics_authentication,
        config.headrace_metrics_token_file,
        mapping,
    )
    if found is not None and any(listener.name == found.name for listener in config.bound_listeners):
        raise ConfigError(f"listeners: {found.name} is the listener of metrics; give yours another name")
    return found


def _inter_broker_listener(config: BrokerConfig) -> Listener:
    wanted = config.inter_broker_listener_name
    if "security.inter.broker.protocol" in config.given:
        if wanted is not None:
            raise ConfigError(
                "inter.broker.listener.name and security.inter.broker.protocol are both set: remove one"
            )
        protocol = config.security_inter_broker_protocol
        for listener in config.advertised:
            if listener.protocol == protocol:
                return listener
        raise ConfigError(f"security.inter.broker.protocol={protocol}: no listener speaks it")
    if wanted is None:
        return config.advertised[0]
    for listener in config.advertised:
        if listener.name == wanted.upper():
            return listener
    names = ", ".join(listener.name for listener in config.advertised)
    raise ConfigError(
        f"inter.broker.listener.name={wanted}: other brokers are told of no such listener; use one of {names}"
    )


def _quorum(config: BrokerConfig, mapping: Mapping[str, str]) -> list[str]:
    addresses = (*config.listeners, *(config.advertised_listeners or ()))
    reserved = {name.upper() for name in config.controller_listener_names}
    warning = check_quorum(mapping, config.broker_id, addresses, reserved)
    return [] if warning is None else [warning]


def _not_reserved(items: tuple[str, ...], reserved: set[str]) -> tuple[str, ...]:
    return tuple(item for item in items if item.partition(":")[0].upper() not in reserved)


def _directories(config: BrokerConfig, warnings: list[str]) -> dict[str, tuple[str, ...]]:
    directories = config.log_dir if config.log_dirs is None else config.log_dirs
    if not directories or "" in directories:
        raise ConfigError("log.dirs: name at least one directory, and no empty one")
    if len(set(directories)) != len(directories):
        raise ConfigError("log.dirs: the same directory is named twice")
    if "log.dirs" not in config.given and "log.dir" not in config.given:
        warnings.append(
            f"log.dirs is not set: data goes to {directories[0]}, which a system may empty at boot"
        )
    return {"data_directories": directories}


def _check_together(config: BrokerConfig) -> None:
    """Rules over more than one property."""
    budget, largest = config.queued_max_request_bytes, config.socket_request_max_bytes
    if budget > 0 and budget < largest:
        raise ConfigError(
            f"queued.max.request.bytes={budget} is below socket.request.max.bytes={largest}, so the largest "
            "request could never be read; raise the first or lower the second"
        )
    wait, lag = config.replica_fetch_wait_max_ms, config.replica_lag_time_max_ms
    if wait > lag:
        raise ConfigError(
            f"replica.fetch.wait.max.ms={wait} is above replica.lag.time.max.ms={lag}, so that followers of "
            "quiet partitions would fall out of sync; lower the first or raise the second"
        )
    if wait > config.replica_socket_timeout_ms:
        raise ConfigError(
            f"replica.fetch.wait.max.ms={wait} is above replica.socket.timeout.ms="
            f"{config.replica_socket_timeout_ms}, so that a quiet fetch would be given up; raise the second"
        )
    least, most = config.log_cleaner_min_compaction_lag_ms, config.log_cleaner_max_compaction_lag_ms
    if least > most:
        raise ConfigError(
            f"log.cleaner.min.compaction.lag.ms={least} is above log.cleaner.max.compaction.lag.ms={most}"
        )
    if config.remote_log_storage_system_enable and not config.headrace_tier_url:
        raise ConfigError(
            "remote.log.storage.system.enable needs to know the store: set headrace.tier.url, for example"
            " s3://BUCKET/PREFIX"
        )
    complaint = check_consumer_groups(config)
    if complaint is not None:
        raise ConfigError(complaint)
