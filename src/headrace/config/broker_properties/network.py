"""Sockets, requests and the limits on both."""

from __future__ import annotations

from headrace.config.declare import int32, int64, names, optional_int32, optional_names, optional_text, text
from headrace.config.property import Status, UpdateMode
from headrace.config.values import INT_MAX


def buffer_size(value: int) -> str | None:
    return None if value == -1 or value > 0 else "use a number of bytes, or -1 for the system's own choice"


class NetworkProperties:
    listeners = names(
        "listeners",
        ("PLAINTEXT://:9092",),
        "Addresses to listen on, NAME://host:port, separated by commas. An empty host is the loopback "
        "address here, not every address: write 0.0.0.0 to be reachable from outside.",
    )
    advertised_listeners = optional_names(
        "advertised.listeners",
        "Addresses that clients are told to use. Needed where they differ from listeners, and always where "
        "a listener is bound to 0.0.0.0.",
    )
    listener_security_protocol_map = text(
        "listener.security.protocol.map",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "The protocol behind each listener name, NAME:PROTOCOL: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    )
    controller_listener_names = names(
        "controller.listener.names",
        (),
        "Listener names that a Kafka file reserves for its controllers. They are not opened here.",
    )
    inter_broker_listener_name = optional_text(
        "inter.broker.listener.name",
        "The listener that brokers use among themselves; the first one if not set.",
    )
    headrace_inter_broker_accepted_listeners = names(
        "headrace.inter.broker.accepted.listeners",
        (),
        "Listeners on which brokers are accepted beside that of inter.broker.listener.name, while a running "
        "cluster moves from one to another. Leave it empty otherwise.",
    )
    port = optional_int32(
        "port",
        "The old way to give the port of a single PLAINTEXT listener. Not used where listeners is set.",
        at_least=0,
        at_most=65535,
    )
    host_name = optional_text(
        "host.name",
        "The old way to give the address of a single PLAINTEXT listener. Not used where listeners is set.",
    )
    advertised_host_name = optional_text(
        "advertised.host.name",
        "The old way to give the host that clients are told. Not used where advertised.listeners is set.",
    )
    advertised_port = optional_int32(
        "advertised.port",
        "The old way to give the port that clients are told. Not used where advertised.listeners is set.",
        at_least=0,
        at_most=65535,
    )
    socket_request_max_bytes = int32(
        "socket.request.max.bytes",
        104_857_600,
        "The largest request that is read. A connection that announces a larger one is closed.",
        at_least=1,
    )
    socket_send_buffer_bytes = int32(
        "socket.send.buffer.bytes",
        -1,
        "Send buffer of a client's socket; -1 leaves it to the system, which suits it to the connection.",
        check=buffer_size,
    )
    socket_receive_buffer_bytes = int32(
        "socket.receive.buffer.bytes",
        -1,
        "Receive buffer of a client's socket; -1 leaves it to the system, which suits it to the connection.",
        check=buffer_size,
    )
    socket_listen_backlog_size = int32(
        "socket.listen.backlog.size",
        50,
        "Connections that may wait to be accepted. The system's own limit also holds.",
        at_least=1,
    )
    connections_max_idle_ms = int64(
        "connections.max.idle.ms",
        600_000,
        "A connection that has been silent for this long is closed; a negative value closes none.",
    )
    max_connections = int32(
        "max.connections",
        INT_MAX,
        "Connections that the broker holds at once. More are closed as they come.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
    )
    max_connections_per_ip = int32(
        "max.connections.per.ip",
        INT_MAX,
        "Connections from one address. More are closed at once.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
    )
    max_connections_per_ip_overrides = text(
        "max.connections.per.ip.overrides",
        "",
        "Exceptions from max.connections.per.ip, address:count, separated by commas.",
        update=UpdateMode.CLUSTER_WIDE,
        status=Status.LATER,
    )
    max_connection_creation_rate = int32(
        "max.connection.creation.rate",
        INT_MAX,
        "New connections a second that the broker accepts.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
        status=Status.LATER,
    )
    queued_max_request_bytes = int64(
        "queued.max.request.bytes",
        -1,
        "Bytes of requests that have arrived in part, over all connections. Above it large requests wait for "
        "their turn. -1 takes 40 % of headrace.peer.memory.bytes, and room for one largest request at least.",
    )
    queued_max_requests = int32(
        "queued.max.requests",
        500,
        "Requests in memory at once. One loop serves them as they are read, so there is no such queue here.",
        at_least=1,
        status=Status.LATER,
    )
    num_network_threads = int32(
        "num.network.threads",
        3,
        "Accepted so that a Kafka file can be used as it is. One event loop serves every connection here.",
        at_least=1,
        update=UpdateMode.CLUSTER_WIDE,
        status=Status.LATER,
    )
    num_io_threads = int32(
        "num.io.threads",
        8,
        "Accepted so that a Kafka file can be used as it is. Appends happen on the event loop here.",
        at_least=1,
        update=UpdateMode.CLUSTER_WIDE,
        status=Status.LATER,
    )
    fetch_max_bytes = int32(
        "fetch.max.bytes",
        57_671_680,
        "The largest answer to one fetch, whatever the client asks for.",
        at_least=1024,
    )
    max_incremental_fetch_session_cache_slots = int32(
        "max.incremental.fetch.session.cache.slots",
        1_000,
        "Fetch sessions that are remembered at once; 0 remembers none.",
        at_least=0,
    )
    max_request_partition_size_limit = int32(
        "max.request.partition.size.limit",
        2_000,
        "Partitions in one answer to DescribeTopicPartitions; a cursor leads on to the rest.",
        at_least=1,
    )
    request_timeout_ms = int32(
        "request.timeout.ms",
        30_000,
        "How long the broker waits for the answer to a request of its own.",
        at_least=1,
        status=Status.LATER,
    )
