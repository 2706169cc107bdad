"""Coordination on a ZooKeeper ensemble: for clusters of more than one broker.

    coordination = ZooKeeperCoordination(parse_zookeeper_connect("zk1:2181,zk2:2181/cluster1"))
    await coordination.start()

ZooKeeper is the write-ahead log of the metadata. A commit is one write to it: check that we are still in
controller, create the node of the batch. Becoming controller, registering, moving the snapshot pointer are
one write each. Every read that decides something asks a server that has caught up first. The parts are in
`coordination/ensemble/`; one event loop owns an instance.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from headrace.config.zookeeper_address import ZooKeeperAddress
from headrace.config.zookeeper_security import OPEN, ZooKeeperSecurity
from headrace.coordination.ensemble.access import close_own_root, warn_of_open_nodes
from headrace.coordination.ensemble.controller_election import ControllerElection
from headrace.coordination.ensemble.members import Members
from headrace.coordination.ensemble.metadata_log import MetadataLog
from headrace.coordination.ensemble.paths import Paths
from headrace.coordination.ensemble.requests import Exists, children, create, exists, get, stored
from headrace.coordination.ensemble.session import Proof, Session, make_lasting_nodes
from headrace.coordination.ensemble.versions import DirectoryVersions
from headrace.coordination.ensemble.watches import LastingWatch
from headrace.core.errors import ConfigError
from headrace.core.ids import BrokerEpoch, BrokerId, ControllerEpoch
from headrace.core.ports_coordination import (
    ActiveController,
    ClusterIdMissing,
    CommittedBatch,
    CoordinationUnavailable,
    Member,
    SessionState,
    SnapshotPointer,
)

SESSION_TIMEOUT_MS = 6_000


class ZooKeeperCoordination:
    def __init__(
        self,
        address: ZooKeeperAddress,
        *,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        connection_timeout_ms: int | None = None,
        security: ZooKeeperSecurity = OPEN,
    ) -> None:
        """The servers grant a session timeout within bounds of their own: 2 to 20 of their ticks."""
        self._paths = Paths(address.chroot)
        self._session = Session(
            address,
            timeout_ms=session_timeout_ms,
            connect_timeout_ms=connection_timeout_ms or session_timeout_ms,
            security=security,
        )
        self._election = ControllerElection(self._session, self._paths)
        self._log = MetadataLog(self._session, self._paths, self._election)
        self._members = Members(self._session, self._paths)
        self._versions = DirectoryVersions(self._session, self._paths)
        self._members_watch = LastingWatch(
            self._session, lambda fired: children(self._paths.members, watch=fired)
        )
        self._controller_watch = LastingWatch(
            self._session, lambda fired: exists(self._paths.controller, watch=fired)
        )

    @property
    def session_timeout_ms(self) -> int:
        return self._session.timeout_ms

    @property
    def session(self) -> SessionState:
        return self._session.state

    def watch_session(self, changed: Callable[[SessionState], None]) -> Callable[[], None]:
        return self._session.watch(changed)

    @property
    def silent_seconds(self) -> float:
        return self._session.silent_seconds

    async def probe(self) -> None:
        await self._session.ask_latest()

    async def start(self) -> None:
        await self._session.start()
        try:
            await self._session.through_breaks(self._prepare)
        except (CoordinationUnavailable, ConfigError):
            await self._session.close()
            raise

    async def _prepare(self) -> None:
        await self._refuse_kafka()
        await make_lasting_nodes(self._session, self._paths.lasting())
        if self._session.security.sets_acl:
            await close_own_root(self._session, self._paths)
            await warn_of_open_nodes(self._session, self._paths)

    async def _refuse_kafka(self) -> None:
        """Its brokers and controller have their nodes where ours have theirs: we would depose each other."""
        (found,) = await self._session.ask_latest(exists(self._paths.kafka_topics))
        if found is not None:
            raise ConfigError(
                f"Apache Kafka keeps a cluster in ZooKeeper at {self._session.address}: give Headrace a"
                " chroot of its own, as in zookeeper.connect=HOST:PORT/headrace"
            )

    async def close(self) -> None:
        await self._session.close()

    async def claim_cluster_id(self, proposed: str, *, directories_empty: bool) -> str:
        self._session.require_connected()
        # Who comes again after a break finds the node, be it of its own making.
        return await self._session.through_breaks(
            lambda: self._claim_cluster_id(proposed, directories_empty=directories_empty)
        )

    async def _claim_cluster_id(self, proposed: str, *, directories_empty: bool) -> str:
        while True:
            answer, restoring = await self._session.ask_latest(
                get(self._paths.cluster_id), exists(self._paths.restoring)
            )
            if restoring is not None:
                raise CoordinationUnavailable(
                    "the metadata in ZooKeeper is being restored: wait for it; if it was cut off, run"
                    " `headrace cluster recover-metadata` again"
                )
            node = stored(answer)
            if node is not None:
                self._session.proof = Proof(self._paths.cluster_id, node.data)
                return decode_cluster_id(node.data)
            if not directories_empty:
                raise ClusterIdMissing(
                    f"ZooKeeper at {self._session.address} knows of no cluster, but the log directories hold"
                    " data of one: check zookeeper.connect and its chroot; if ZooKeeper has lost its data,"
                    " run `headrace cluster recover-metadata`"
                )
            try:
                await self._session.change(create(self._paths.cluster_id, encode_cluster_id(proposed)))
            except Exists:
                pass  # another broker made it: take that one

    async def register(self, broker_id: BrokerId, description: bytes) -> BrokerEpoch:
        return await self._members.register(broker_id, description)

    async def deregister(self, broker_id: BrokerId, epoch: BrokerEpoch) -> None:
        await self._members.deregister(broker_id, epoch)

    async def members(self) -> Mapping[BrokerId, Member]:
        return await self._members.all()

    def watch_members(self, changed: Callable[[], None]) -> Callable[[], None]:
        return self._members_watch.listen(changed)

    async def note_versions(self, broker_id: BrokerId, versions: Mapping[UUID, int]) -> None:
        await self._versions.note(broker_id, versions)

    async def versions(self, broker_id: BrokerId) -> Mapping[UUID, int]:
        return await self._versions.of(broker_id)

    async def claim_controller(
        self, broker_id: BrokerId, *, deposing: ControllerEpoch | None = None
    ) -> ControllerEpoch:
        return await self._election.take(broker_id, deposing)

    async def active_controller(self) -> ActiveController | None:
        return await self._election.active_controller()

    async def latest_epoch(self) -> ControllerEpoch:
        return await self._election.latest_epoch()

    def watch_controller(self, changed: Callable[[], None]) -> Callable[[], None]:
        return self._controller_watch.listen(changed)

    async def append(self, sequence: int, batch: bytes, epoch: ControllerEpoch) -> None:
        await self._log.append(sequence, batch, epoch)

    async def end(self) -> int:
        return await self._log.end()

    async def read(self, from_sequence: int) -> Sequence[CommittedBatch]:
        return await self._log.read(from_sequence)

    async def start_offset(self) -> int:
        return await self._log.start_offset()

    async def snapshot(self) -> SnapshotPointer | None:
        return await self._log.snapshot()

    async def move_snapshot(self, pointer: SnapshotPointer, epoch: ControllerEpoch) -> None:
        await self._log.move_snapshot(pointer, epoch)

    async def trim(self, before: int, epoch: ControllerEpoch) -> None:
        await self._log.trim(before, epoch)


def encode_cluster_id(cluster_id: str) -> bytes:
    return json.dumps({"version": "1", "id": cluster_id}).encode()


def decode_cluster_id(data: bytes) -> str:
    return str(json.loads(data)["id"])
