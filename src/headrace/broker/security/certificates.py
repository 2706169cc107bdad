"""The certificates of all listeners: loaded at the start, looked at every ten seconds, replaced while the
broker runs.

A reload makes a new context, and new connections use it; those that are open go on. A file that cannot be
used changes nothing, and is told of once. Reading and computing happen in a thread.

The certificate that ZooKeeper is shown is read for each connection by whoever connects. Here it is only
looked at, to tell in time that it ends: a broker whose connection breaks after that does not come back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from headrace.broker.runtime.runtime import Runtime
from headrace.broker.security.listener_tls import ListenerTls, load
from headrace.config.broker import BrokerConfig
from headrace.config.listener_security import ListenerSecurity
from headrace.config.tls_properties import KeyStore
from headrace.core.errors import ConfigError
from headrace.core.tasks import spawn
from headrace.tls.certificate import facts_of
from headrace.tls.file_stamps import Stamp, stamp_of
from headrace.tls.stores import read_identity

LOOK_SECONDS: Final = 10.0
ZOOKEEPER: Final = "zookeeper"
"""Stands where a listener's name does."""
WARNING_DAYS: Final = (0, 1, 7, 30)
_DAY_SECONDS: Final = 86_400

OnLoaded = Callable[[str, ListenerTls], None]
Outcome = tuple[str, Stamp, ListenerTls | ConfigError]


class Certificates:
    def __init__(self, runtime: Runtime, network: Any, on_loaded: OnLoaded) -> None:
        """`on_loaded` is told of every listener whose TLS is there, again after each reload."""
        self._runtime = runtime
        self._network = network
        self._on_loaded = on_loaded
        self._securities = {
            name: security
            for name, security in runtime.static_config.listener_security.items()
            if security.tls is not None
        }
        self._to_zookeeper = zookeeper_keys(runtime.static_config)
        self._loaded: dict[str, ListenerTls] = {}
        self._ends: dict[str, float] = {}
        """When each certificate ends, in seconds since 1970."""
        self._seen: dict[str, Stamp] = {}
        """The files that were last tried, with or without success."""
        self._warned: dict[str, tuple[float, int]] = {}
        """The expiry and the number of days that were last warned of."""
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Before anybody can connect. Raises ConfigError."""
        for name, security in self._securities.items():
            self._take(name, load(security, self._now()))
        self._note_zookeeper(_end_of(self._to_zookeeper))
        self._runtime.metrics.read_certificates = self._expiries
        self._warn_of_expiry()

    def start(self) -> None:
        if self._securities or self._to_zookeeper is not None:
            self._task = spawn("certificates", self._watch(), self._runtime.loop)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def reload(self) -> None:
        """At once, and whether the files look changed or not."""
        self._asked.set()

    async def _watch(self) -> None:
        while True:
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._asked.wait()
            except TimeoutError:
                pass
            is_asked = self._asked.is_set()
            self._asked.clear()
            await self.look(is_asked=is_asked)

    async def look(self, *, is_asked: bool = False) -> None:
        """Take what has changed."""
        jobs = [
            (name, security, self._seen[name], self._loaded[name])
            for name, security in self._securities.items()
        ]
        now = self._now()
        outcomes: list[Outcome] = []
        ends: list[float | None] = []

        def work() -> None:
            ends.append(_end_of(self._to_zookeeper))
            for name, security, seen, loaded in jobs:
                outcomes.extend(_tried(name, security, None if is_asked else seen, loaded, now))

        await self._runtime.offload(work)
        self._note_zookeeper(ends[0])
        for name, stamp, outcome in outcomes:
            self._seen[name] = stamp
            if isinstance(outcome, ConfigError):
                self._runtime.log.error("certificate not reloaded: the old one stays", error=str(outcome))
            else:
                self._take(name, outcome)
                self._runtime.log.info(
                    "certificate reloaded", listener=name, expires=_date(outcome.facts.not_after)
                )
        self._warn_of_expiry()

    def _take(self, name: str, loaded: ListenerTls) -> None:
        self._loaded[name] = loaded
        self._ends[name] = loaded.facts.not_after
        self._seen[name] = loaded.stamp
        self._network.tls[name] = loaded.settings
        self._on_loaded(name, loaded)

    def _note_zookeeper(self, end: float | None) -> None:
        if end is not None:
            self._ends[ZOOKEEPER] = end

    # --- expiry -----------------------------------------------------------------------------------------

    def _now(self) -> float:
        return self._runtime.clock.wall_ms() / 1000

    def _expiries(self) -> Iterator[tuple[str, float]]:
        now = self._now()
        for name, not_after in self._ends.items():
            yield name, not_after - now

    def _warn_of_expiry(self) -> None:
        """Once for each number of days, and again for a new certificate."""
        for name, left in self._expiries():
            days = next((days for days in WARNING_DAYS if left <= days * _DAY_SECONDS), None)
            not_after = self._ends[name]
            if days is None or self._warned.get(name) == (not_after, days):
                continue
            self._warned[name] = not_after, days
            if days == 0 and name == ZOOKEEPER:
                self._runtime.log.error(
                    "certificate for ZooKeeper has expired: renew it before this broker has to connect again"
                )
            elif days == 0:
                self._runtime.log.error(
                    "certificate has expired: clients cannot connect until it is renewed", listener=name
                )
            else:
                self._runtime.log.warning(
                    "certificate expires soon: renew it", listener=name, expires=_date(not_after)
                )


def zookeeper_keys(config: BrokerConfig) -> KeyStore | None:
    """What this broker shows to ZooKeeper; None if it shows nothing."""
    tls = config.zookeeper_security.tls
    return (
        tls.key_store if config.zookeeper is not None and tls is not None and tls.key_store.is_there else None
    )


def _end_of(store: KeyStore | None) -> float | None:
    try:
        return None if store is None else facts_of(read_identity(store).chain).not_after
    except ConfigError:
        return None  # told by whoever connects with it


def _tried(
    name: str, security: ListenerSecurity, seen: Stamp | None, loaded: ListenerTls, now: float
) -> Iterator[Outcome]:
    assert security.tls is not None
    stamp = stamp_of(security.tls)
    if stamp == seen:
        return
    try:
        yield name, stamp, load(security, now, loaded.facts)
    except ConfigError as error:
        yield name, stamp, error


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
