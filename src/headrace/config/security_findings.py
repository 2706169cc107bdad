"""What is wrong with the protection that a broker's file asks for, and what to do about each.

A broker tells it of itself, and `headrace doctor security --config FILE` of a file before anybody starts it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from headrace.config.listeners import ANY_ADDRESS, LOOPBACK, Listener
from headrace.config.security_checks import broker_listeners

if TYPE_CHECKING:
    from headrace.config.broker import BrokerConfig

ANONYMOUS = "User:ANONYMOUS"
SOON_DAYS, NOW_DAYS = 30, 7
_DAY_SECONDS = 86_400
_EXPIRED = "its certificate has expired"
_ENDS = "its certificate ends in"
_OWN_HOSTS = {LOOPBACK, "localhost", "::1"}


class Level(StrEnum):
    SERIOUS = "serious"
    """Somebody may read, change or stop what they should not."""
    ADVICE = "advice"


class Finding(NamedTuple):
    level: Level
    subject: str
    text: str
    cure: str
    """What to do."""


def examine(config: BrokerConfig) -> list[Finding]:
    return [
        *(finding for listener in config.bound_listeners for finding in _listener(config, listener)),
        *_listeners_together(config),
        *_rights(config),
        *_zookeeper(config),
        *_metrics(config),
    ]


def is_reachable(config: BrokerConfig) -> bool:
    """From other machines."""
    return not all(listener.is_loopback for listener in config.bound_listeners)


def _level(is_outside: bool) -> Level:
    return Level.SERIOUS if is_outside else Level.ADVICE


def _listener(config: BrokerConfig, listener: Listener) -> Iterator[Finding]:
    """On the loopback address only what is nearly always a mistake."""
    security, subject = config.security_of(listener.name), f"listener {listener}"
    outside = not listener.is_loopback
    if "PLAIN" in security.mechanisms and security.tls is None:
        yield Finding(
            _level(outside),
            subject,
            "it has PLAIN without TLS: everybody on the way can read the passwords",
            "use SASL_SSL, or SCRAM-SHA-512 in place of PLAIN",
        )
    if security.client_auth == "requested" and not security.has_sasl:
        yield Finding(
            _level(outside),
            subject,
            f"ssl.client.auth=requested lets in who has no certificate, as {ANONYMOUS}",
            "set ssl.client.auth=required",
        )
    elif outside and not security.is_authenticated:
        yield Finding(
            Level.SERIOUS,
            subject,
            f"it is reachable from outside and asks nobody who they are: all are {ANONYMOUS}",
            "use SASL_SSL, or SSL with ssl.client.auth=required",
        )
    if outside and security.tls is None:
        yield Finding(
            Level.SERIOUS,
            subject,
            "it is reachable from outside without encryption: who is on the way reads and changes everything",
            "use SASL_SSL or SSL; `headrace cert create` makes certificates",
        )


def _listeners_together(config: BrokerConfig) -> Iterator[Finding]:
    securities = config.listener_security.values()
    plain = [each for each in config.bound_listeners if config.security_of(each.name).tls is None]
    if plain and any(each.tls is not None for each in securities):
        yield Finding(
            _level(any(not each.is_loopback for each in plain)),
            "listeners",
            f"{', '.join(each.name for each in plain)} is open without TLS beside listeners that have it",
            "when every client has moved, remove it from listeners and advertised.listeners",
        )
    further = sorted(broker_listeners(config) - {config.inter_broker_listener.name})
    if further:
        yield Finding(
            Level.ADVICE,
            "headrace.inter.broker.accepted.listeners",
            f"brokers are accepted on {', '.join(further)} too, as during a move to another listener",
            "remove it when every broker has the new inter.broker.listener.name",
        )


def _zookeeper(config: BrokerConfig) -> Iterator[Finding]:
    if config.zookeeper is None or config.zookeeper_security.sets_acl:
        return
    hosts = {host for host, _ in config.zookeeper.servers}
    yield Finding(
        _level(not hosts <= _OWN_HOSTS),
        "zookeeper.connect",
        "who reaches ZooKeeper reads the keys of users there, and can change the cluster and its rules",
        "set zookeeper.ssl.client.enable and zookeeper.set.acl, and run `headrace cluster secure-zookeeper`",
    )


def _rights(config: BrokerConfig) -> Iterator[Finding]:
    outside = is_reachable(config)
    if not config.authorizer_class_name:
        yield Finding(
            _level(outside),
            "authorizer.class.name",
            "there is no authorizer: whoever connects may do everything, and on the listener"
            f" {config.inter_broker_listener.name} also what only brokers do",
            "set authorizer.class.name and super.users, first with headrace.authorizer.mode=shadow",
        )
        return
    if config.headrace_authorizer_mode == "shadow":
        yield Finding(
            _level(outside),
            "headrace.authorizer.mode",
            "in shadow mode nothing is denied",
            "when `headrace acl shadow` lists nothing that should work, remove it",
        )
    if config.allow_everyone_if_no_acl_found:
        yield Finding(
            Level.SERIOUS,
            "allow.everyone.if.no.acl.found",
            "what no rule is about is open to everybody, each new topic too",
            "remove it; `headrace acl suggest` has the rules that clients need",
        )
    if ANONYMOUS in (each.strip() for each in config.super_users.split(";")):
        yield Finding(
            Level.SERIOUS,
            "super.users",
            f"{ANONYMOUS} is a super user: whoever does not say who they are may do everything",
            f"remove {ANONYMOUS}, and give brokers certificates or passwords",
        )


def _metrics(config: BrokerConfig) -> Iterator[Finding]:
    metrics = config.metrics
    if metrics is not None and metrics.is_open:
        where = "every address" if metrics.host in ANY_ADDRESS else metrics.host
        yield Finding(
            Level.ADVICE,
            "headrace.metrics.listener",
            f"metrics are on {where}, for everybody: they name topics and groups",
            f"bind it to {LOOPBACK}:{metrics.port}, or set headrace.metrics.authentication and https://",
        )


def expiry(subject: str, seconds_left: float) -> Iterator[Finding]:
    """Of a certificate."""
    days = int(seconds_left // _DAY_SECONDS)
    if days >= SOON_DAYS:
        return
    text = _EXPIRED if seconds_left <= 0 else f"{_ENDS} {days} days"
    yield Finding(
        Level.SERIOUS if days < NOW_DAYS else Level.ADVICE,
        subject,
        text,
        "renew it, with `headrace cert renew NAME` if that made it; brokers take it up by themselves",
    )


def is_expiry(finding: Finding) -> bool:
    return finding.text.startswith((_EXPIRED, _ENDS))
