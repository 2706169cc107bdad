"""A process is on its disks before it is in the coordination service: a kill in between costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from headrace.broker.cluster import description
from headrace.broker.cluster.membership import Membership
from headrace.broker.runtime.logging import get_logger
from headrace.controller.brokers import BrokerDescription
from headrace.controller.image import Endpoint
from headrace.core.errors import ConfigError, CorruptLog, HeadraceError
from headrace.core.ids import BrokerEpoch, BrokerId, TopicPartition
from headrace.core.ports_coordination import Coordination, Member
from headrace.log.wholeness import ALL_ON
from headrace.testing.disk import SimulatedDisk


class Service:
    """Registers a broker, or fails when that has had its effect: the process is killed just then."""

    session_timeout_ms = 100

    def __init__(self) -> None:
        self.told: list[BrokerDescription] = []
        self.kills = False
        self.found: dict[BrokerId, Member] = {}
        self.noted: dict[UUID, int] = {}

    async def members(self) -> Mapping[BrokerId, Member]:
        return self.found

    async def versions(self, _broker_id: BrokerId) -> Mapping[UUID, int]:
        return self.noted

    async def note_versions(self, _broker_id: BrokerId, versions: Mapping[UUID, int]) -> None:
        self.noted = dict(versions)

    async def register(self, broker_id: BrokerId, node: bytes) -> BrokerEpoch:
        self.told.append(description.decode(broker_id, node))
        if self.kills:
            raise HeadraceError("killed")
        epoch = BrokerEpoch(10 * len(self.told))
        self.found = {broker_id: Member(broker_id, epoch, node)}
        return epoch


class Host:
    """A disk, and the processes that run on it one after the other."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk()
        self.disk.make_dirs("/data")
        self.service = Service()
        self.boot_id = "boot"
        self.processes = 0
        self.version = 0
        self.has_claims = self.has_metadata = True
        self.epoch_at_stop = -1
        self.damaged: dict[TopicPartition, CorruptLog] = {}
        self.can_write_claims = True

    def renew(self) -> None:
        """The claims of a directory that is older. The process is killed just before, or just after."""
        if not self.can_write_claims:
            raise HeadraceError("killed")
        self.version = max(self.service.noted.values()) + 1

    def start(self, uuid: int = 77) -> Membership:
        self.processes += 1
        directory = SimpleNamespace(path="/data", uuid=UUID(int=uuid), may_have_lost=False)
        runtime: Any = SimpleNamespace(
            random=SimpleNamespace(randbytes=lambda _size: bytes([self.processes]) * 16),
            broker_id=BrokerId(1),
            disk=self.disk,
            loop=asyncio.get_running_loop(),
            config=SimpleNamespace(broker_rack=None, data_directories=["/data"]),
            log=get_logger("test"),
            supported_features={},
            environment=SimpleNamespace(boot_id=self.boot_id, wholeness=ALL_ON),
        )
        metadata: Any = SimpleNamespace(
            image=SimpleNamespace(brokers={1: None} if self.has_metadata else {}, topics_by_name={})
        )
        logs: Any = SimpleNamespace(
            online=lambda: [directory],
            logs={},
            quarantined=self.damaged,
            broker_epoch_at_stop=self.epoch_at_stop,
            have_claims=self.has_claims,
            versions=lambda: {UUID(int=uuid): self.version},
            raise_versions=lambda known: [directory] if known.get(UUID(int=uuid), 0) > self.version else [],
            take_claims_again=lambda: [SimpleNamespace(run=self.renew)],
        )
        endpoints = (Endpoint("PLAINTEXT", "h", 1),)
        return Membership(runtime, metadata, logs, endpoints, cast(Coordination, self.service))


async def test_a_process_that_is_killed_as_it_registers_is_known_to_the_next() -> None:
    host = Host()
    await host.start().register()
    host.service.kills = True
    with pytest.raises(HeadraceError):
        await host.start().register()
    host.service.kills = False
    await host.start().register()
    first, killed, last = host.service.told
    assert last.stopped == "same-boot"
    assert last.earlier_incarnations == (first.incarnation_id, killed.incarnation_id)


async def test_after_a_start_of_the_host_nothing_is_vouched_for() -> None:
    host = Host()
    await host.start().register()
    host.boot_id = "another"
    await host.start().register()
    await host.start().register()
    _, second, third = host.service.told
    assert second.stopped == "unknown"
    assert third.earlier_incarnations == (second.incarnation_id,)


async def test_a_damaged_replica_is_named_and_the_rest_is_vouched_for() -> None:
    host = Host()
    await host.start().register()
    host.damaged = {TopicPartition("t", 3): CorruptLog("a segment is missing")}
    await host.start().register()
    _, again = host.service.told
    assert (again.stopped, again.lost) == ("same-boot", frozenset({("t", 3)}))


async def test_with_more_lost_replicas_than_a_node_can_name_nothing_is_vouched_for() -> None:
    host = Host()
    await host.start().register()
    host.damaged = {TopicPartition("t" * 200, index): CorruptLog("") for index in range(2000)}
    await host.start().register()
    _, again = host.service.told
    assert (again.stopped, again.earlier_incarnations, again.lost) == ("unknown", (), frozenset())


@pytest.mark.parametrize(
    ("has_metadata", "has_claims", "epoch_at_stop", "stopped"),
    [
        (True, True, -1, "same-boot"),
        (True, False, -1, "same-boot"),
        (False, True, 10, "clean"),
        (False, True, -1, "unknown"),
        (False, False, 10, "unknown"),
        (False, False, -1, "unknown"),
    ],
)
async def test_who_cannot_know_which_replicas_there_were_vouches_for_none(
    has_metadata: bool, has_claims: bool, epoch_at_stop: int, stopped: str
) -> None:
    """A folder that is missing too would not be missed. Claims name all replicas only after a clean stop."""
    host = Host()
    await host.start().register()
    host.has_metadata, host.has_claims, host.epoch_at_stop = has_metadata, has_claims, epoch_at_stop
    await host.start().register()
    assert host.service.told[-1].stopped == stopped


async def test_directories_that_are_older_than_was_told_are_not_vouched_for() -> None:
    host = Host()
    process = host.start()
    await process.register()
    host.version = 5
    await process.versions.tell()
    await process.register()
    for version in (4, 5):
        host.version = version
        await host.start().register()
    assert [each.stopped for each in host.service.told] == ["unknown", "same-boot", "unknown", "same-boot"]


@pytest.mark.parametrize("when", ["before its claims", "before its node", "later"])
async def test_who_was_not_vouched_for_is_from_then_on(when: str) -> None:
    """The next process was distrusted too if this one was killed within a second, though it had joined the
    ISR. What was lost before it is never vouched for, whenever it is killed."""
    host = Host()
    process = host.start()
    await process.register()
    host.version = 5
    await process.versions.tell()
    host.version = 0
    host.can_write_claims = when != "before its claims"
    host.service.kills = when == "before its node"
    if when == "later":
        await host.start().register()
    else:
        with pytest.raises(HeadraceError):
            await host.start().register()
    host.can_write_claims, host.service.kills = True, False
    await host.start().register()
    first, *_, last = host.service.told
    assert first.incarnation_id not in last.earlier_incarnations
    if when == "before its claims":
        assert last.stopped == "unknown"
    else:
        killed = host.service.told[1]
        assert (killed.stopped, last.stopped) == ("unknown", "same-boot")
        assert last.earlier_incarnations == (killed.incarnation_id,)


async def test_a_process_that_registers_again_leaves_its_claims_to_the_checkpoints() -> None:
    host = Host()
    process = host.start()
    host.service.noted = {UUID(int=77): 5}
    await process.register()
    assert host.version == 6
    host.can_write_claims = False
    await process.register()
    assert host.service.told[-1].stopped == "same-boot"


async def test_a_lost_session_loses_nothing() -> None:
    host = Host()
    process = host.start()
    await process.register()
    await process.register()
    first, again = host.service.told
    assert again.incarnation_id == first.incarnation_id
    assert (again.stopped, again.earlier_incarnations) == ("same-boot", (first.incarnation_id,))
    assert process.broker_epoch == 20


async def test_a_broker_with_other_disks_is_not_pushed_aside_while_it_lives() -> None:
    host = Host()
    await host.start().register()
    with pytest.raises(ConfigError, match=r"each needs its own broker\.id"):
        await host.start(uuid=78).register()
    assert len(host.service.told) == 1


async def test_a_node_that_goes_with_its_session_is_waited_for() -> None:
    host = Host()
    await host.start().register()
    asyncio.get_running_loop().call_later(0.05, host.service.found.clear)
    await host.start(uuid=78).register()
    assert len(host.service.told) == 2
