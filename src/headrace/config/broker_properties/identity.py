"""Who the broker is, where its cluster is, and how it leaves."""

from __future__ import annotations

from headrace.config.declare import boolean, int32, int64, names, optional_int32, optional_text
from headrace.config.property import Property
from headrace.config.values import ConfigType


class IdentityProperties:
    broker_id = int32(
        "broker.id",
        -1,
        "The number of this broker, unique in its cluster. Without one the broker is number 0.",
        at_least=-1,
    )
    node_id: Property[int] = Property(
        "node.id",
        ConfigType.INT,
        None,
        "The newer name of broker.id. If both are written they must agree.",
        at_least=0,
    )
    broker_rack = optional_text(
        "broker.rack",
        "The rack, host or zone of this broker. Replicas of a partition are spread over racks.",
    )
    process_roles = names(
        "process.roles",
        (),
        "Accepted so that a Kafka file can be used as it is. Every broker can be the controller here, so the "
        "value changes nothing. A controller.quorum of others is refused while zookeeper.connect is not set.",
        allowed=("broker", "controller"),
    )
    zookeeper_connect = optional_text(
        "zookeeper.connect",
        "The ZooKeeper servers of the cluster, host:port,host:port, with an optional /path at the end that "
        "keeps clusters apart. Without it, or empty, the broker is a cluster of its own.",
    )
    zookeeper_session_timeout_ms = int32(
        "zookeeper.session.timeout.ms",
        6_000,
        "How long a broker may be silent before it counts as gone. A process that ended is noticed at once.",
        at_least=1,
    )
    zookeeper_connection_timeout_ms = optional_int32(
        "zookeeper.connection.timeout.ms",
        "How long to wait for the first connection to ZooKeeper; the session timeout if not set.",
        at_least=1,
    )
    controlled_shutdown_enable = boolean(
        "controlled.shutdown.enable",
        True,
        "Hand leaderships over to other brokers before stopping.",
        aliases=("controlled.shutdown.enabled",),
    )
    controlled_shutdown_max_retries = int32(
        "controlled.shutdown.max.retries",
        3,
        "How often the hand-over is tried again before the broker stops without it.",
        at_least=0,
    )
    controlled_shutdown_retry_backoff_ms = int64(
        "controlled.shutdown.retry.backoff.ms",
        5_000,
        "Pause between two tries of the hand-over.",
        at_least=0,
    )
