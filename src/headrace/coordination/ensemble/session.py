"""One session with ZooKeeper, as the event loop sees it. Only `coordination/ensemble/` knows kazoo.

kazoo runs a thread that owns the connection. A request is handed to that thread without waiting, and its
answer comes back to the loop as a future, so the loop never blocks. Requests are answered in the order in
which they were sent, also across a reconnection; whoever reads after a write of unknown outcome therefore
learns what became of it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple, TypeVar

from kazoo.exceptions import KazooException, RolledBackError, RuntimeInconsistency
from kazoo.protocol.states import EventType, KazooState

from headrace.config.zookeeper_address import ZooKeeperAddress
from headrace.config.zookeeper_security import OPEN, ZooKeeperSecurity
from headrace.coordination.ensemble.connection import new_client
from headrace.coordination.ensemble.refusals import translate
from headrace.coordination.ensemble.requests import (
    ConnectionBroken,
    Exists,
    Missing,
    NotPermitted,
    Refused,
    Request,
    create,
    exists,
    get,
    stored,
)
from headrace.coordination.ensemble.secure_sockets import SecureSockets
from headrace.core.failures import report
from headrace.core.ports_coordination import CoordinationUnavailable, SessionState
from headrace.core.timers import TimerQueue

T = TypeVar("T")

CLOSE_SECONDS: Final = 3.0
"""How long `close` waits for the service to confirm. A dead one lets the session expire instead."""
_AT_ONCE: Final = 64
"""Requests sent together. kazoo is woken through a socket that holds a few hundred bytes before it blocks."""
_LOG: Final = logging.getLogger("headrace.zookeeper")

_STATES: Final = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.SUSPENDED,
    KazooState.LOST: SessionState.LOST,
}


class Proof(NamedTuple):
    """A node that says whose ensemble this is. One that lost its data, or is another's, lacks it."""

    path: str
    data: bytes


class Session:
    """Call it on one event loop. `number` changes with each session that ended: what it owned is gone."""

    def __init__(
        self,
        address: ZooKeeperAddress,
        *,
        timeout_ms: int,
        connect_timeout_ms: int,
        security: ZooKeeperSecurity = OPEN,
    ) -> None:
        self.address = address
        self.security = security
        self._sockets: SecureSockets | None = None
        self._refusal = ""
        """What was told last of being kept out."""
        self._wanted_timeout_ms = timeout_ms
        self.state = SessionState.LOST
        self.number = 0
        self.proof: Proof | None = None
        self._connect_timeout_ms = connect_timeout_ms
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timers: TimerQueue | None = None
        self._client: Any = None
        self._waiting: dict[asyncio.Future[Any], None] = {}
        self._watchers: list[Callable[[SessionState], None]] = []

    @property
    def id(self) -> int:
        """What the nodes that this session owns carry; 0 while there is none."""
        identity = None if self._client is None else self._client.client_id
        return 0 if identity is None else int(identity[0])

    @property
    def timeout_ms(self) -> int:
        """After so much silence the session ends: as configured, or as the servers grant it if that is less.

        Leases and suspicions are counted by it. More than was granted would be a promise that is not kept.
        """
        granted = None if self._client is None else self._client.granted_timeout_ms
        return self._wanted_timeout_ms if granted is None else min(granted, self._wanted_timeout_ms)

    @property
    def silent_seconds(self) -> float:
        """Since the servers were last heard of. They answer pings at least every third of a session."""
        return 0.0 if self._client is None else time.monotonic() - self._client.heard_at

    def watch(self, changed: Callable[[SessionState], None]) -> Callable[[], None]:
        self._watchers.append(changed)

        def stop() -> None:
            if changed in self._watchers:
                self._watchers.remove(changed)

        return stop

    # --- its life ---------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Raises CoordinationUnavailable; ConfigError if the certificates cannot be used."""
        self._loop = asyncio.get_running_loop()
        self._timers = TimerQueue(self._loop)
        if self.security.tls is not None:
            self._sockets = await asyncio.to_thread(SecureSockets, self.security.tls)
        self._client = new_client(self.address, self._wanted_timeout_ms, self.security, self._sockets)
        self._client.add_listener(self._on_state_in_thread)
        self._client.start_async()
        try:
            await self.connected(self._connect_timeout_ms / 1000)
        except CoordinationUnavailable:
            await self.close()
            raise CoordinationUnavailable(
                f"no ZooKeeper answers at {self.address.hosts} within {self._connect_timeout_ms} ms:"
                f" {self._why_not()}"
            ) from None

    def _why_not(self) -> str:
        if self._sockets is not None and self._sockets.failure is not None:
            return self._sockets.failure
        check = "check zookeeper.connect, that a majority of the servers run, and that they can be reached"
        return check if self._sockets else f"{check}; a secureClientPort needs zookeeper.ssl.client.enable"

    async def connected(self, timeout: float) -> None:
        """Returns as soon as the session is connected; CoordinationUnavailable if that takes too long."""
        if self._is_connected():
            return
        arrived = asyncio.Event()
        stop = self.watch(lambda state: arrived.set() if state is SessionState.CONNECTED else None)
        try:
            async with asyncio.timeout(timeout):  # wait_for may take a cancellation for the arrival
                await arrived.wait()
        except TimeoutError:
            raise self._unavailable() from None
        finally:
            stop()

    async def through_breaks(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """What may be done twice, done again when the connection breaks under it, while there is time for
        connecting: a broker that starts on a busy machine must not end because one connection did."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._connect_timeout_ms / 1000
        while True:
            try:
                return await attempt()
            except CoordinationUnavailable as error:
                if not isinstance(error, ConnectionBroken) and self._is_connected():
                    raise  # the answer is no, and not that there was none
                if loop.time() >= deadline:
                    raise
            await self.connected(deadline - loop.time())

    async def close(self) -> None:
        """End the session there too, so that what it owns goes at once, if the service can be told."""
        client, self._client = self._client, None
        if client is None:
            return
        client.remove_listener(self._on_state_in_thread)
        self._enter(SessionState.LOST, tell=False)
        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def end() -> None:
            try:
                client.stop()
                client.close()
            except Exception as error:  # kazoo's own thread did not end; it is a daemon and holds nothing up
                _LOG.warning("the ZooKeeper client did not stop in order: %s", error)
            _tell(loop, _resolve, ended, None)

        # kazoo joins its threads, which may sit in a connection attempt. No executor: that would make the
        # end of the process wait for it.
        threading.Thread(target=end, name="headrace-zookeeper-close", daemon=True).start()
        await asyncio.wait([ended], timeout=CLOSE_SECONDS)

    # --- what the connection's thread tells ---------------------------------------------------------------

    def _on_state_in_thread(self, state: Any) -> None:
        _tell(self._loop, self._on_state, _STATES[state])

    def _on_state(self, state: SessionState) -> None:
        if self._client is not None and state is not self.state:
            level = logging.INFO if state is SessionState.CONNECTED else logging.WARNING
            _LOG.log(level, "the ZooKeeper session is %s", state.value)
            self._enter(state, tell=True)

    def _enter(self, state: SessionState, *, tell: bool) -> None:
        self.state = state
        if state is SessionState.LOST:
            self.number += 1
        if state is SessionState.CONNECTED:
            self._refusal = ""
        if state is not SessionState.CONNECTED:
            # kazoo keeps a request that comes while it reconnects, and sends it later. Nobody waits for
            # that: what has no answer now has an unknown outcome.
            waiting, self._waiting = self._waiting, {}
            for future in waiting:
                if not future.done():
                    future.set_exception(ConnectionBroken("the connection to ZooKeeper broke"))
        for changed in tuple(self._watchers) if tell else ():
            try:
                changed(state)
            except Exception as error:  # the others, and the futures behind them, hear of it all the same
                report("a listener of the ZooKeeper session", error)

    # --- requests ----------------------------------------------------------------------------------------

    def require_connected(self) -> None:
        """A suspended session is asked for nothing: CoordinationUnavailable, with nothing tried."""
        if not self._is_connected():
            raise self._unavailable()

    def _is_connected(self) -> bool:
        # A request hears of a broken connection before the loop hears of the state: kazoo knows first.
        return self.state is SessionState.CONNECTED and bool(self._client.connected)

    def _unavailable(self) -> CoordinationUnavailable:
        return CoordinationUnavailable(f"ZooKeeper at {self.address.hosts} cannot be reached now")

    def send(self, request: Request) -> asyncio.Future[Any]:
        """Hand a request to the connection's thread. Its answer, or its error, comes as the future."""
        self.require_connected()
        loop, timers = self._loop, self._timers
        assert loop is not None
        assert timers is not None
        answer: asyncio.Future[Any] = loop.create_future()
        self._waiting[answer] = None
        # A server that answers nothing is noticed by its missing pings, but not while others keep asking it.
        limit = timers.after(
            self.timeout_ms / 1000,
            "a request to ZooKeeper",
            lambda: _fail(answer, ConnectionBroken("no answer in time")),
        )

        def done(_: asyncio.Future[Any]) -> None:
            limit.cancel()
            self._waiting.pop(answer, None)
            if not answer.cancelled():
                # Asked in any case: whoever sent several together may have given up on the others.
                self._tell_refusal(answer.exception())

        answer.add_done_callback(done)
        promise = request(self._client)
        promise.rawlink(lambda result: _tell(loop, _settle, answer, result.value, result.exception))
        return answer

    def _tell_refusal(self, error: BaseException | None) -> None:
        """Brokers try again and again. What keeps them out is told once for each connection."""
        if isinstance(error, NotPermitted) and str(error) != self._refusal:
            self._refusal = str(error)
            _LOG.error("%s", error)

    async def ask(self, *requests: Request) -> list[Any]:
        """Send some requests together; their answers in order. A node that is missing answers None."""
        answers: list[Any] = []
        for start in range(0, len(requests), _AT_ONCE):
            futures = [self.send(request) for request in requests[start : start + _AT_ONCE]]
            answers += await asyncio.gather(*futures, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, Missing):
                raise answer
        return [None if isinstance(answer, Missing) else answer for answer in answers]

    async def ask_latest(self, *requests: Request) -> list[Any]:
        """The same, of a server that has caught up with everything that was committed before this call.

        Decisions rest on these answers. So they are also proved to come from the cluster that we are of: an
        emptied ensemble would say that nothing was ever committed.
        """
        proof = self.proof
        proving = () if proof is None else (get(proof.path),)
        _, *answers = await self.ask(lambda client: client.sync_async("/"), *proving, *requests)
        if proof is not None:
            node = stored(answers.pop(0))
            if node is None or node.data != proof.data:
                raise CoordinationUnavailable(
                    f"ZooKeeper at {self.address} no longer holds this cluster: if it lost its data, stop the"
                    " brokers and run `headrace cluster recover-metadata`"
                )
        return answers

    async def change(self, request: Request) -> Any:
        """One write. Raises Missing, Exists or OtherVersion; ConnectionBroken if its outcome is unknown."""
        return await self.send(request)

    async def commit(self, *operations: Callable[[Any], None]) -> list[Any]:
        """All operations in one write, or none of them: Refused. ConnectionBroken if that is unknown."""

        def request(client: Any) -> Any:
            transaction = client.transaction()
            for operation in operations:
                operation(transaction)
            return transaction.commit_async()

        results: list[Any] = await self.send(request)
        for place, result in enumerate(results):
            if isinstance(result, KazooException) and not isinstance(
                result, (RolledBackError, RuntimeInconsistency)
            ):
                reason = translate(result)
                self._tell_refusal(reason)
                if isinstance(reason, (ConnectionBroken, NotPermitted)):
                    raise reason
                raise Refused(place, reason)
        if any(isinstance(result, KazooException) for result in results):
            raise ConnectionBroken("ZooKeeper rolled a transaction back and did not say why")
        return results


def is_change(event: Any) -> bool:
    """Whether a watch fired for the node itself, not for the connection."""
    return bool(event.type != EventType.NONE)


async def make_lasting_nodes(session: Session, paths: Iterable[str]) -> None:
    wanted = list(paths)
    found = await session.ask_latest(*(exists(path) for path in wanted))
    for path, stat in zip(wanted, found, strict=True):
        if stat is None:
            try:
                await session.change(create(path, b""))
            except Exists:
                pass  # another broker starts at the same moment


def _settle(answer: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if error is not None:
        _fail(answer, translate(error))
    else:
        _resolve(answer, value)


def _resolve(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _tell(loop: asyncio.AbstractEventLoop | None, function: Callable[..., None], *args: object) -> None:
    """Run `function` on the loop, from another thread. A loop that has ended hears nothing any more."""
    if loop is None:
        return
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        pass
