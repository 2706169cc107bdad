"""Who a connection speaks for, and what it may do: asked by the dispatcher, by handlers and by listeners."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from headrace.broker.security.delegation_tokens import (
    DelegationTokens,
    Identity,
    require_tokens,
)
from headrace.security.acl import CLUSTER_NAME, Operation, ResourceType
from headrace.security.errors import SecurityDisabled
from headrace.security.hosts import java_host
from headrace.security.principal import Principal

if TYPE_CHECKING:
    from headrace.broker.authorization.access_memory import AccessMemory
    from headrace.network.connection import Connection
    from headrace.security.mechanism import Authenticated
    from headrace.security.rights import Authorizer, Rights


class Security:
    def __init__(
        self,
        *broker_listeners: str,
        authorizer: Authorizer | None = None,
        tokens: DelegationTokens | None = None,
        memory: AccessMemory | None = None,
    ) -> None:
        self._broker_listeners = frozenset(broker_listeners)
        self.authorizer = authorizer
        self.memory = memory
        """Of what clients did and were denied; None without an authorizer."""
        self.tokens = tokens
        """None without `delegation.token.secret.key`."""
        self.authenticate: dict[str, Callable[[Connection], None]] = {}
        """By the names of the listeners with SASL: begins it on a new connection."""
        self.on_known: Callable[[Connection], None] = lambda _connection: None
        """Told when it is known whose connection it is, and what that may do."""

    @property
    def has_authorizer(self) -> bool:
        return self.authorizer is not None

    def require_authorizer(self) -> None:
        """Raises SecurityDisabled."""
        if self.authorizer is None:
            raise SecurityDisabled("no authorizer is configured")

    def require_tokens(self, identity: Identity) -> DelegationTokens:
        return require_tokens(self.tokens, identity)

    def rights_of(self, principal: Principal, host: str) -> Rights | None:
        """None where everybody may do everything."""
        if self.authorizer is None:
            return None
        return self.authorizer.rights_of(str(principal), _as_java_writes(host))

    def on_connected(self, connection: Connection) -> None:
        """Before the first request of a connection is read."""
        authenticate = self.authenticate.get(connection.listener)
        if authenticate is not None:
            authenticate(connection)
        else:
            connection.rights = self.rights_of(connection.principal, connection.peer_host)
            self.on_known(connection)

    def on_authenticated(self, connection: Connection, proved: Authenticated) -> None:
        connection.principal = proved.principal
        connection.came_by_token = proved.token_id is not None
        connection.rights = self.rights_of(proved.principal, connection.peer_host)
        self.on_known(connection)

    def is_broker(self, connection: Connection) -> bool:
        """Whether the peer may do what only brokers do: fetch as a replica, read the metadata log, forward
        requests in somebody's name. Without an authorizer all who reach a listener between brokers may."""
        if connection.listener not in self._broker_listeners:
            return False
        rights = connection.rights
        return rights is None or rights.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)

    def is_authenticated_broker(self, connection: Connection) -> bool:
        """As `is_broker`, and with an authorizer nobody who has not said yet who they are. Reports nothing:
        it is asked of clients that come early, and they have not tried to be brokers."""
        if connection.listener not in self._broker_listeners:
            return False
        if self.authorizer is None:
            return True
        rights = connection.rights
        return rights is not None and rights.allows_silently(
            Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        )

    def end_early_logins(self, connections: Iterable[Connection]) -> None:
        """Whoever logged in before the metadata was there did it with what this broker knew when it stopped:
        a password may have been changed meanwhile. They log in again. Brokers stay, or none would get on."""
        for connection in list(connections):
            if connection.listener in self.authenticate and not self.is_authenticated_broker(connection):
                connection.close()


def _as_java_writes(host: str) -> str:
    try:
        return java_host(host)
    except ValueError:
        return host  # not an address: in tests, where networks are simulated
