"""Who connects: SASL, and how brokers authenticate to each other. Those that begin with `sasl.` may differ by
listener, under the prefix `listener.name.<name>.`"""

from __future__ import annotations

from headrace.config.declare import int32, int64, names, optional_secret, optional_text, text
from headrace.config.listeners import PROTOCOLS
from headrace.config.property import Status

BY_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""What brokers can use among themselves: they have a password each."""
MECHANISMS = (*BY_PASSWORD, "OAUTHBEARER", "GSSAPI")


def mechanisms(value: tuple[str, ...]) -> str | None:
    return next((complaint for each in value if (complaint := _complaint(each, MECHANISMS))), None)


def between_brokers(value: str) -> str | None:
    return _complaint(value, BY_PASSWORD)


def _complaint(value: str, allowed: tuple[str, ...]) -> str | None:
    return None if value in allowed else f"{value!r} is not one of {', '.join(allowed)}"


class AuthenticationProperties:
    security_inter_broker_protocol = text(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        "Brokers use the listener with this protocol among themselves. Set it or inter.broker.listener.name, "
        "not both; the first listener is used if neither is set.",
        allowed=PROTOCOLS,
    )
    sasl_mechanism_inter_broker_protocol = optional_text(
        "sasl.mechanism.inter.broker.protocol",
        "The mechanism by which brokers authenticate to each other, on a listener with SASL.",
        check=between_brokers,
    )
    sasl_mechanism_controller_protocol = optional_text(
        "sasl.mechanism.controller.protocol",
        "Accepted so that a Kafka file can be used as it is. Controllers are brokers here.",
        status=Status.LATER,
    )
    sasl_enabled_mechanisms = names(
        "sasl.enabled.mechanisms",
        (),
        "Mechanisms that clients may use on listeners with SASL. PLAIN and OAUTHBEARER need TLS, unless they "
        "are set under the prefix of a SASL_PLAINTEXT listener.",
        check=mechanisms,
    )
    sasl_jaas_config = optional_secret(
        "sasl.jaas.config",
        "Users, a broker's own user and password, or its keytab, as text of Java's login configuration. Only "
        "as listener.name.<name>.<mechanism>.sasl.jaas.config or <mechanism>.sasl.jaas.config.",
    )
    sasl_server_max_receive_size = int32(
        "sasl.server.max.receive.size",
        65_536,
        "The largest request of a client that has not authenticated yet.",
        at_least=1,
    )
    connections_max_reauth_ms = int64(
        "connections.max.reauth.ms",
        0,
        "After this long a client of a SASL listener has to authenticate again; 0 asks for it never.",
        at_least=0,
    )
    connection_failed_authentication_delay_ms = int32(
        "connection.failed.authentication.delay.ms",
        100,
        "How long a failed authentication is left without its answer, which slows down guessing.",
        at_least=0,
    )
    headrace_authentication_timeout_ms = int32(
        "headrace.authentication.timeout.ms",
        10_000,
        "A client that is not done with TLS and SASL after this long is disconnected.",
        at_least=100,
        at_most=600_000,
    )
