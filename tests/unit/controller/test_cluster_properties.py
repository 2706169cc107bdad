"""Random failures, decided by the machine, against logs that really lose their tails.

The model is perfect where the controller is not: followers copy their leader exactly, and a leader knows the
committed row at once. So whatever is lost here is lost by a decision.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from headrace.controller.brokers import Stopped
from headrace.controller.image import ConfigResource, ResourceType
from headrace.controller.operations import ConfigChange, ConfigOp, IsrChange, IsrMember, Reassignment, Result
from headrace.controller.safeguards import ALL_ON, ControllerSafeguards
from headrace.controller.topic_image import PartitionState
from headrace.core.errors import StaleBrokerEpoch
from headrace.core.ids import NO_BROKER, BrokerEpoch, BrokerId
from tests.unit.controller.cluster import Cluster, description

# Few, so that what happens meets what happened before.
BROKERS = range(4)
PARTITIONS = [(0, [0, 1, 2])]

brokers = st.sampled_from(BROKERS)
some_brokers = st.lists(brokers, min_size=1, max_size=4, unique=True)
partitions = st.integers(0, len(PARTITIONS) - 1)


class Process:
    """A broker as it really is, whether or not the controller knows it."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.up = True
        self.epoch = -1
        self.stopped: Stopped = "unknown"
        self.disk = 0
        # Of each partition, what was written, in order; no value is written twice.
        self.logs: dict[int, list[int]] = {partition: [] for partition, _ in PARTITIONS}
        # Something may be missing that the controller still counts on: it has not been told of the crash.
        self.shortened = False


class ClusterOfLogs(RuleBasedStateMachine):
    safeguards = ALL_ON

    @initialize(minimum=st.integers(1, 3))
    def begin(self, minimum: int) -> None:
        self.cluster = Cluster([], safeguards=self.safeguards)
        self.machine = self.cluster.machine
        self.processes = [Process(broker_id) for broker_id in BROKERS]
        self.next_epoch = 10
        self.next_value = 0
        self.committed: dict[int, list[int]] = {partition: [] for partition, _ in PARTITIONS}
        self.led: dict[tuple[int, int], tuple[int, int]] = {}
        self.rows: dict[int, PartitionState] = {}
        self.late: list[tuple[BrokerId, BrokerEpoch, IsrChange]] = []
        self.unclean_asked = False
        for process in self.processes:
            self._register(process)
            self.unfence(process.broker_id)
        configs = [("min.insync.replicas", str(minimum))]
        self.topic_id = self.cluster.create("t", assignments=PARTITIONS, configs=configs)

    # --- what the rules need --------------------------------------------------------------------------------

    def _do(self, result: Result[Any]) -> Any:
        response = self.cluster.do(result)
        for partition, _ in PARTITIONS:
            self._follow(partition)
        return response

    def _follow(self, partition: int) -> None:
        """A leader that was elected knowing that something may be missing makes its log the truth.

        That is allowed when an operator asks for it, or when nobody but the last leader is left to ask.
        """
        state = self._state(partition)
        before = self.rows.get(partition, state)
        allowed = self.unclean_asked or before.exceptional.last_known_elr == (state.leader,)
        if allowed and state.exceptional.recovering and state.leader_epoch > before.leader_epoch:
            self.committed[partition] = list(self.processes[state.leader].logs[partition])
        self.rows[partition] = state

    def _state(self, partition: int) -> PartitionState:
        return self.cluster.image.topics_by_name["t"].state(partition)

    def _leader(self, partition: int) -> Process | None:
        """The leader, if it is a process that runs and is the one that was elected."""
        leader = self._state(partition).leader
        if leader == NO_BROKER:
            return None
        process = self.processes[leader]
        return process if self._current(process) else None

    def _current(self, process: Process) -> bool:
        registered = self.cluster.image.brokers.get(process.broker_id)
        return process.up and registered is not None and registered.epoch == process.epoch

    def _register(self, process: Process) -> None:
        previous, process.epoch = process.epoch, self.next_epoch
        self.next_epoch += 1
        said = description(process.broker_id)._replace(
            directories=(UUID(int=1000 * (process.broker_id + 1) + process.disk),),
            previous_epoch=previous,
            stopped=process.stopped,
        )
        result = self.machine.register_broker(said, BrokerEpoch(process.epoch))
        process.up = True
        process.stopped = "unknown"
        process.shortened = False
        if hasattr(self, "topic_id"):
            self._do(result)
        else:
            self.cluster.do(result)

    def _propose(self, leader: Process, partition: int, isr: list[int], late: bool) -> None:
        state = self._state(partition)
        members = [IsrMember(each, self.processes[each].epoch) for each in isr]
        change = IsrChange(self.topic_id, partition, state.leader_epoch, state.partition_epoch, members)
        self.late.append((BrokerId(leader.broker_id), BrokerEpoch(leader.epoch), change))
        if not late:
            self.arrive(len(self.late) - 1)

    # --- data -----------------------------------------------------------------------------------------------

    @rule(partition=partitions, copied=st.booleans())
    def write(self, partition: int, copied: bool) -> None:
        leader = self._leader(partition)
        if leader is None:
            return
        self.next_value += 1
        leader.logs[partition].append(self.next_value)
        if copied:
            self.copy(partition)

    @rule(partition=partitions)
    def copy(self, partition: int) -> None:
        """The ISR fetches, the others lag; what the whole ISR has is acknowledged."""
        leader = self._leader(partition)
        if leader is None:
            return
        state = self._state(partition)
        maximal = dict.fromkeys([*state.isr, *self._proposed(state)])
        for each in maximal:
            follower = self.processes[each]
            if self._current(follower):
                follower.logs[partition] = list(leader.logs[partition])
        minimum = min(int(self.cluster.image.topic_configs("t")["min.insync.replicas"]), len(state.replicas))
        up = all(self._current(self.processes[each]) for each in maximal)
        if up and len(state.isr) >= minimum:
            self.committed[partition] = list(leader.logs[partition])

    def _proposed(self, state: PartitionState) -> list[int]:
        """Members of an ISR that the leader of now asked for, and of which it has not heard."""
        row = state.leader_epoch, state.partition_epoch
        pending = [
            change for _, _, change in self.late if (change.leader_epoch, change.partition_epoch) == row
        ]
        return [member.broker_id for change in pending for member in change.isr]

    @rule(partition=partitions, who=brokers, late=st.booleans())
    def admit(self, partition: int, who: int, late: bool) -> None:
        leader, state = self._leader(partition), self._state(partition)
        if leader is None or who in state.isr or who not in state.replicas:
            return
        if self._current(self.processes[who]):
            self.processes[who].logs[partition] = list(leader.logs[partition])
            self._propose(leader, partition, [*state.isr, who], late)

    @rule(partition=partitions, keep=st.sets(brokers), late=st.booleans())
    def shrink(self, partition: int, keep: set[int], late: bool) -> None:
        leader, state = self._leader(partition), self._state(partition)
        if leader is not None:
            kept = [each for each in state.isr if each in keep or each == leader.broker_id]
            self._propose(leader, partition, kept, late)

    @rule(which=st.integers(0, 5))
    def arrive(self, which: int) -> None:
        """A proposal reaches the controller, perhaps after the row that it was made on has gone."""
        if self.late:
            sender, epoch, change = self.late.pop(which % len(self.late))
            try:
                result = self.machine.alter_partitions(sender, epoch, [change])
            except StaleBrokerEpoch:
                return
            self._do(result)

    # --- failures -------------------------------------------------------------------------------------------

    @rule(who=brokers, lost=st.integers(0, 5), how=st.sampled_from(["clean", "same-boot", "unknown"]))
    def stop(self, who: int, lost: int, how: Stopped) -> None:
        """A process ends; the controller may hear of it, or only of the next one."""
        process = self.processes[who]
        if not process.up:
            return
        process.up = False
        process.stopped = how
        if how == "unknown" and lost:
            process.shortened = True
            for log in process.logs.values():
                del log[max(0, len(log) - lost) :]

    @rule(who=brokers, unfenced=st.booleans())
    def start(self, who: int, unfenced: bool) -> None:
        process = self.processes[who]
        if not process.up:
            self._register(process)
            if unfenced:
                self.unfence(who)

    @rule(who=brokers, lost=st.integers(1, 5))
    def lose_power(self, who: int, lost: int) -> None:
        """So short that nobody noticed."""
        self.stop(who, lost, "unknown")
        self.start(who, unfenced=True)

    @rule(who=brokers, how=st.sampled_from(["clean", "same-boot", "unknown"]))
    def replace_the_disk(self, who: int, how: Stopped) -> None:
        process = self.processes[who]
        if process.up:
            return
        process.disk += 1
        process.stopped = how
        process.logs = {partition: [] for partition, _ in PARTITIONS}
        self._register(process)

    @rule(who=some_brokers)
    def fence(self, who: list[int]) -> None:
        self._do(self.machine.fence_brokers(who))

    @rule(who=brokers)
    def unfence(self, who: int) -> None:
        process = self.processes[who]
        if self._current(process):
            result = self.machine.unfence_broker(BrokerId(who), BrokerEpoch(process.epoch))
            if hasattr(self, "topic_id"):
                self._do(result)
            else:
                self.cluster.do(result)

    # --- operations -----------------------------------------------------------------------------------------

    @rule(who=brokers)
    def begin_shutdown(self, who: int) -> None:
        process = self.processes[who]
        if self._current(process):
            self._do(self.machine.begin_shutdown(BrokerId(who), BrokerEpoch(process.epoch)))

    @rule(partition=partitions, wanted=st.none() | some_brokers)
    def reassign(self, partition: int, wanted: list[int] | None) -> None:
        self._do(self.machine.reassign_partitions([Reassignment("t", partition, wanted)]))

    @rule()
    def balance(self) -> None:
        self._do(self.machine.balance_leaders())

    @rule(election=st.integers(0, 1), partition=partitions)
    def elect(self, election: int, partition: int) -> None:
        self.unclean_asked = election == 1
        self._do(self.machine.elect_leaders(election, [("t", partition)]))
        self.unclean_asked = False

    @rule(minimum=st.integers(1, 3))
    def configure(self, minimum: int) -> None:
        change = ConfigChange(ConfigOp.SET, "min.insync.replicas", str(minimum))
        resource = ConfigResource(ResourceType.TOPIC, "t")
        self._do(self.machine.incremental_alter_configs([(resource, [change])]))

    # --- what must hold -------------------------------------------------------------------------------------

    @invariant()
    @precondition(lambda self: hasattr(self, "topic_id"))
    def rows_are_sound(self) -> None:
        minimum = int(self.cluster.image.topic_configs("t")["min.insync.replicas"])
        for partition, _ in PARTITIONS:
            state = self._state(partition)
            rare = state.exceptional
            assert state.leader == NO_BROKER or state.leader in state.isr
            assert set(state.isr) <= set(state.replicas)
            assert set(rare.elr) <= set(state.replicas) - set(state.isr)
            assert set(rare.adding) | set(rare.removing) <= set(state.replicas)
            assert len(state.directories) == len(state.replicas) == len(set(state.replicas))
            assert not any(self.cluster.image.brokers[each].fenced for each in state.isr)
            if self.safeguards.eligible_below_minimum:
                assert not rare.elr or len(state.isr) < min(minimum, len(state.replicas))
            assert rare.last_known_elr == () or state.leader == NO_BROKER

    @invariant()
    @precondition(lambda self: hasattr(self, "topic_id"))
    def an_epoch_belongs_to_one_process(self) -> None:
        for partition, _ in PARTITIONS:
            state = self._state(partition)
            if state.leader != NO_BROKER:
                mine = state.leader, self.cluster.image.brokers[state.leader].epoch
                assert self.led.setdefault((partition, state.leader_epoch), mine) == mine

    @invariant()
    @precondition(lambda self: hasattr(self, "topic_id"))
    def nothing_acknowledged_is_lost(self) -> None:
        for partition, _ in PARTITIONS:
            state, truth = self._state(partition), self.committed[partition]
            for each in (*state.isr, *state.exceptional.elr):
                process = self.processes[each]
                if not process.shortened:
                    assert process.logs[partition][: len(truth)] == truth, (partition, each)


class EpochsRise(ClusterOfLogs):
    """The same, watching how the epochs move with each decision."""

    def _follow(self, partition: int) -> None:
        before, state = self.rows.get(partition), self._state(partition)
        super()._follow(partition)
        if before is None or before == state:
            return
        assert state.partition_epoch > before.partition_epoch
        assert state.leader_epoch >= before.leader_epoch
        taken_away = not set(before.replicas) <= set(state.replicas)
        if state.leader != before.leader or taken_away:
            assert state.leader_epoch > before.leader_epoch
        elif len(before.isr) == len(state.isr):
            assert state.leader_epoch - before.leader_epoch <= 1


TestClusterOfLogs = ClusterOfLogs.TestCase
TestClusterOfLogs.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestEpochsRise = EpochsRise.TestCase
TestEpochsRise.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)


@pytest.mark.parametrize(
    "name",
    [
        "no_resumed_leadership",
        "proof_of_a_whole_log",
        "eligible_leaders",
        "eligible_below_minimum",
    ],
)
def test_the_model_sees_what_happens_without_a_safeguard(name: str) -> None:
    without = type("Without", (ClusterOfLogs,), {"safeguards": ControllerSafeguards(**{name: False})})
    search = settings(
        max_examples=400,
        stateful_step_count=40,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(without, settings=search)
