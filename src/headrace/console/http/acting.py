"""Who asks for a change, and which changes are offered: none that the brokers' rules would refuse."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.types import Scope

from headrace.client.security import ClientSecurity
from headrace.console.changes.making import Actor, Changes
from headrace.console.http.sights import Sight, sight_of
from headrace.http.authorization import Basic, parse_authorization
from headrace.security.acl import CLUSTER_NAME, Operation, ResourceType
from headrace.security.principal import Principal

SCOPE: Final = "headrace.console.actor"


class NotAllowed(Exception):
    """A change that this console does not make for this viewer; says why."""


def actor_in(scope: Scope, principal: Principal, authorization: str | None) -> Actor | None:
    """None where the console cannot log in at the brokers as this viewer: it has no password of theirs."""
    given = parse_authorization(authorization)
    if not isinstance(given, Basic):
        return None
    return Actor(str(principal), _host(scope), (given.user, given.password))


def own_actor(security: ClientSecurity, host: str) -> Actor:
    """Where nobody is asked who they are, whoever comes acts as the console's own user."""
    own = security.credentials
    return Actor("the console's own user" if own is None else f"User:{own.username}", host)


def _host(scope: Scope) -> str:
    client = scope.get("client") or ("", 0)
    return str(client[0])


def changes_of(request: Request) -> Changes | None:
    found: Changes | None = request.app.state.changes
    return found


def principal_of(request: Request) -> str:
    """Empty where the console does not know it."""
    if request.app.state.own_security is not None:
        return own_actor(request.app.state.own_security, "").principal
    found: Actor | None = request.scope.get(SCOPE)
    return "" if found is None else found.principal


def viewer_of(request: Request) -> str:
    """Who has limits of their own: one principal at one address."""
    host = "" if request.client is None else request.client.host
    return f"{sight_of(request).principal or principal_of(request)} {host}"


def actor_of(request: Request) -> Actor:
    """Raises NotAllowed."""
    if request.app.state.own_security is not None:
        return own_actor(request.app.state.own_security, _host(request.scope))
    found: Actor | None = request.scope.get(SCOPE)
    if found is None:
        raise NotAllowed(
            "A change is made as whoever asks for it, and only a user and a password let the console log in"
            " at the brokers for you. You came with a token or a certificate."
        )
    return found


class Offers:
    """For templates: which buttons there are."""

    def __init__(self, request: Request) -> None:
        self.any = changes_of(request) is not None and (
            request.app.state.own_security is not None or request.scope.get(SCOPE) is not None
        )
        self._sight: Sight | None = sight_of(request) if self.any else None

    def _may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        return self._sight is not None and self._sight.may(operation, kind, name)

    def settings(self, topic: str) -> bool:
        return self._may(Operation.ALTER_CONFIGS, ResourceType.TOPIC, topic) or self._may(
            Operation.ALTER, ResourceType.TOPIC, topic
        )

    def deletion(self, topic: str) -> bool:
        return self._may(Operation.DELETE, ResourceType.TOPIC, topic)

    def produce(self, topic: str) -> bool:
        return self._may(Operation.WRITE, ResourceType.TOPIC, topic)

    def replay(self, topic: str) -> bool:
        """Into which topic is chosen later."""
        return self._may(Operation.READ, ResourceType.TOPIC, topic)

    def cluster(self) -> bool:
        """Elections, and moves that are called off."""
        return self._may(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)

    def reset(self, group: str) -> bool:
        return self._may(Operation.READ, ResourceType.GROUP, group)
