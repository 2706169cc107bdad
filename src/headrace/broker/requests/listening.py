"""The listeners of a broker: their ports, their limits, and what is said of peers that break the protocol."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from headrace.broker.runtime.runtime import Runtime
from headrace.controller.image import Endpoint
from headrace.core.errors import ConfigError, HeadraceError, NotReady
from headrace.network.connection import Connection

if TYPE_CHECKING:
    from headrace.broker.requests.dispatcher import Dispatcher
    from headrace.broker.security.security import Security


def make_network(runtime: Runtime, read_threads: ThreadPoolExecutor) -> Any:
    """What `Environment.make_endpoint` makes."""
    config, memory = runtime.config, runtime.memory

    def on_protocol_error(connection: Connection, error: HeadraceError) -> None:
        if isinstance(error, NotReady):
            return  # they will come back, and the start says for itself what it waits for
        runtime.peer_log.warning("connection closed", connection.peer_host, error=str(error))

    def on_failed_handshake(host: str, listener: str, reason: str) -> None:
        runtime.peer_log.warning("TLS handshake failed", host, listener=listener, error=reason)

    return runtime.environment.make_endpoint(
        runtime.loop,
        read_threads,
        max_frame_bytes=config.socket_request_max_bytes,
        max_connections=runtime.connection_limit,
        max_connections_per_ip=config.max_connections_per_ip,
        max_idle_seconds=config.connections_max_idle_ms / 1000,
        requests=memory.requests,
        answers=memory.answers,
        send_buffer_bytes=config.socket_send_buffer_bytes,
        receive_buffer_bytes=config.socket_receive_buffer_bytes,
        backlog=config.socket_listen_backlog_size,
        meter=runtime.metrics.listener,
        on_protocol_error=on_protocol_error,
        on_failed_handshake=on_failed_handshake,
    )


def bind(runtime: Runtime, network: Any) -> tuple[Endpoint, ...]:
    """What to advertise. Raises ConfigError if a port is taken."""
    ports = {}
    for listener in runtime.config.bound_listeners:
        try:
            ports[listener.name] = network.bind(listener.host, listener.port, listener.name)
        except OSError as error:
            raise ConfigError(
                f"cannot listen at {listener.host}:{listener.port}: {error.strerror}: stop what listens"
                " there, or choose another port (`listeners`, or `headrace up --port`)"
            ) from error
    return tuple(
        Endpoint(listener.name, listener.host, listener.port or ports[listener.name], listener.protocol_id)
        for listener in runtime.config.advertised
    )


def follow_config(runtime: Runtime, network: Any) -> None:
    network.max_connections = runtime.connection_limit
    network.max_connections_per_ip = runtime.config.max_connections_per_ip


def open_to_clients(security: Security, network: Any, dispatcher: Dispatcher) -> None:
    if security.authenticate:
        security.end_early_logins(network.connections)
    dispatcher.open_to_clients()
