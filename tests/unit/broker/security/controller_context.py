"""As much of a broker as the handlers of security need: a controller that commits at once, and its image."""

from __future__ import annotations

import asyncio
import inspect
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from headrace.broker.authorization.guard import authorised
from headrace.broker.authorization.table import GUARDS
from headrace.broker.requests.api import Call
from headrace.broker.requests.apis import BY_KEY
from headrace.broker.requests.context import RequestContext
from headrace.broker.requests.duplicates import drop_duplicates
from headrace.broker.requests.long_requests import LongRequests
from headrace.broker.requests.request_parts import is_long
from headrace.broker.requests.request_shapes import SHAPES
from headrace.broker.runtime.turns import Turns
from headrace.broker.security.delegation_tokens import Identity
from headrace.broker.security.security import Security
from headrace.controller.shell import Decision
from headrace.core.errors import HeadraceError, RequestTimedOut
from headrace.core.ports import Clock
from headrace.protocol.message import Message
from headrace.protocol.primitives import Reader
from headrace.security.acl_index import AclIndex
from headrace.security.principal import ANONYMOUS
from headrace.security.rights import Authorizer, Rights
from tests.unit.controller.cluster import Cluster

R = TypeVar("R")
M = TypeVar("M", bound=Message)


class CommittingController:
    """Decides and commits in place. Notes how many records each commit has."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.commits: list[list[Message]] = []
        self.decisions = 0
        self.is_active = True
        self.failure: HeadraceError | None = None

    async def submit(self, decide: Decision[R], validate_only: bool = False) -> R:
        await asyncio.sleep(0)
        self.decisions += 1
        if self.failure is not None:
            raise self.failure
        result = decide(self.cluster.machine)
        if not validate_only:
            if result.records:
                self.commits.append(result.records)
            self.cluster.apply(result.records)
        return result.response

    def time_out(self) -> None:
        self.failure = RequestTimedOut("the controller cannot reach ZooKeeper")


class Server:
    def __init__(self, security: Security | None = None, asks: Identity | None = None) -> None:
        self.asks = Identity(ANONYMOUS) if asks is None else asks
        self.rights: Rights | None = None
        self.cluster = Cluster()
        self.controller = CommittingController(self.cluster)
        self.now_ms = 1_000_000
        clock = cast(Clock, SimpleNamespace(wall_ms=lambda: self.now_ms, monotonic=lambda: 1.0))
        self.turns = CountedTurns(asyncio.get_running_loop(), clock)
        context: Any = SimpleNamespace(
            runtime=SimpleNamespace(clock=clock, turns=self.turns),
            controller=self.controller,
            metadata=SimpleNamespace(image=self.cluster.image),
            peers=SimpleNamespace(reachability=None),
            security=Security("", authorizer=Authorizer(AclIndex())) if security is None else security,
        )
        self.context = cast(RequestContext, context)

    async def ask(self, request: Message, answer: type[M], version: int | None = None) -> M:
        """Through the bytes and the shape of the request, as the dispatcher does it."""
        api = BY_KEY[request.API_KEY]
        version = api.highest if version is None else version
        assert api.lowest <= version <= api.highest
        assert api.handle is not None
        decoded = api.request.decode(Reader(request.to_bytes(version)), version)
        shape = SHAPES.get(request.API_KEY << 8 | version)
        call = Call(
            version,
            None,
            cast(Any, SimpleNamespace(closed=False)),
            self.asks.principal,
            rights=self.rights,
            came_by_token=self.asks.token_authenticated,
        )
        if shape is not None:
            drop_duplicates(decoded, shape)
        if shape is not None and is_long(decoded, shape):
            response = await LongRequests(self.context, GUARDS).carry_out(api, decoded, call, shape)
        else:
            result = authorised(self.context, GUARDS, api, decoded, call)
            response = await result if inspect.isawaitable(result) else result
        return answer.from_bytes(response.to_bytes(version), version)


class CountedTurns(Turns):
    """Every slice is over at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        super().__init__(loop, clock)
        self.waited = 0

    @property
    def is_over(self) -> bool:
        return True

    async def next(self) -> None:
        self.waited += 1
        await asyncio.sleep(0)
