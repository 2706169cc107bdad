"""Who lives: one ephemeral node per broker. The number of the change that made it is the broker epoch."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from headrace.coordination.ensemble.paths import Paths
from headrace.coordination.ensemble.requests import (
    ConnectionBroken,
    Missing,
    OtherVersion,
    Refused,
    Stored,
    children,
    delete,
    get,
    stored,
)
from headrace.coordination.ensemble.session import Session
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.core.ports_coordination import CoordinationUnavailable, Member

_ATTEMPTS = 10
_MOST: Final = 2**31 - 1
_LOG: Final = logging.getLogger("headrace.zookeeper")


class Members:
    def __init__(self, session: Session, paths: Paths) -> None:
        self._session = session
        self._paths = paths
        self._strange: set[str] = set()
        """Names of nodes among the members that are no broker ids: said once."""

    async def register(self, broker_id: BrokerId, description: bytes) -> BrokerEpoch:
        """Make the node, in place of one that an earlier session, or this one, left: one write."""
        self._session.require_connected()
        number = self._session.number
        for _ in range(_ATTEMPTS):
            if not await self._replace(broker_id, description):
                continue  # what was found changed before the write
            found, base = await self._look(broker_id, latest=False)
            if number != self._session.number:
                raise CoordinationUnavailable("the ZooKeeper session ended during the registration")
            if found is None or found.owner != self._session.id:
                raise CoordinationUnavailable(
                    f"another process registered as broker {broker_id} at the same moment:"
                    " check that no other broker has this broker.id"
                )
            return BrokerEpoch(found.created + base)
        raise CoordinationUnavailable(
            f"other processes keep registering as broker {broker_id}: check that no other has this broker.id"
        )

    async def _replace(self, broker_id: BrokerId, description: bytes) -> bool:
        path = self._paths.member(broker_id)
        old, _ = await self._look(broker_id)
        operations = [lambda transaction: transaction.create(path, description, ephemeral=True)]
        if old is not None:
            operations.insert(0, lambda transaction: transaction.delete(path, old.version))
            if old.version == 0:
                # The new node gets another version than the old one had: so neither of the two can be
                # deleted for the other.
                operations.append(lambda transaction: transaction.set_data(path, description))
        try:
            await self._session.commit(*operations)
        except Refused:
            return False
        except ConnectionBroken as error:
            raise CoordinationUnavailable(
                f"it is not known whether the registration succeeded: {error}"
            ) from error
        return True

    async def deregister(self, broker_id: BrokerId, epoch: BrokerEpoch) -> None:
        found, base = await self._look(broker_id)
        if found is None or found.created + base != epoch:
            return
        try:
            await self._session.change(delete(self._paths.member(broker_id), found.version))
        except (Missing, OtherVersion):
            pass  # gone, or replaced by another incarnation, since we looked

    async def all(self) -> Mapping[BrokerId, Member]:
        names, base = await self._session.ask_latest(
            children(self._paths.members), get(self._paths.epoch_base)
        )
        ids = sorted(self._ids_of(names))
        # The same server answers, so nothing older than the list is seen; what went meanwhile is None.
        answers = await self._session.ask(*(get(self._paths.member(broker_id)) for broker_id in ids))
        members: dict[BrokerId, Member] = {}
        for broker_id, node in zip(ids, map(stored, answers), strict=True):
            if node is not None:
                epoch = BrokerEpoch(node.created + _number(stored(base)))
                members[broker_id] = Member(broker_id, epoch, node.data)
        return members

    def _ids_of(self, names: Iterable[str]) -> list[BrokerId]:
        """Whoever else writes here, the brokers are found."""
        numbers = {name: int(name) for name in names if name.isascii() and name.isdigit()}
        ids = {name: number for name, number in numbers.items() if str(number) == name and number <= _MOST}
        strange = set(names) - ids.keys()
        for name in sorted(strange - self._strange):
            _LOG.warning("%s/%s in ZooKeeper is no broker id and is passed over", self._paths.members, name)
        self._strange = strange
        return [BrokerId(number) for number in ids.values()]

    async def _look(self, broker_id: BrokerId, *, latest: bool = True) -> tuple[Stored | None, int]:
        ask = self._session.ask_latest if latest else self._session.ask
        node, base = await ask(get(self._paths.member(broker_id)), get(self._paths.epoch_base))
        return stored(node), _number(stored(base))


def _number(base: Stored | None) -> int:
    """What is added to ZooKeeper's numbers, which begin anew where its data was lost and restored."""
    return 0 if base is None else int(base.data)
