"""Random histories against two dictionaries, and a reading of the log into a new table at any time."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.coordinators.decision import Decision
from headrace.groups.group_config import GroupConfig
from headrace.groups.offsets.removals import RemovedTopicName
from headrace.groups.offsets.stored_offset import tombstone
from headrace.protocol.primitives import ZERO_UUID
from tests.unit.groups.offsets.logged_offsets import NOW, LoggedOffsets
from tests.unit.groups.offsets.state import state_of

Key = tuple[str, str, int]

KEYS = st.tuples(st.sampled_from(["g", "h"]), st.sampled_from(["t", "u"]), st.integers(0, 1))
PRODUCERS = st.integers(1, 3)
OFFSETS = st.integers(0, 1 << 62)
RETENTION_MS = 60_000


class OffsetsModel(RuleBasedStateMachine):
    """`committed` and `pending` hold the offset and the place of its record in the log."""

    def __init__(self) -> None:
        super().__init__()
        self.logged = LoggedOffsets(
            GroupConfig(offsets_retention_minutes=1, offsets_retention_check_interval_ms=RETENTION_MS)
        )
        self.logged.offsets.on_loaded(NOW)
        self.elapsed_ms = 0
        self.committed: dict[Key, tuple[int, int, int]] = {}
        self.pending: dict[int, dict[Key, tuple[int, int, int]]] = {}

    @property
    def now_ms(self) -> int:
        return NOW + self.elapsed_ms

    def _place(self) -> int:
        return len(self.logged.log)

    def _forget(self, key: Key) -> None:
        self.committed.pop(key, None)
        for kept in self.pending.values():
            kept.pop(key, None)

    def _is_pending(self, key: Key) -> bool:
        return any(key in kept for kept in self.pending.values())

    @rule(key=KEYS, offset=OFFSETS)
    def commit(self, key: Key, offset: int) -> None:
        self.committed[key] = (offset, self._place(), self.now_ms)
        self.logged.commit(*key, offset, now_ms=self.now_ms)

    @rule(producer=PRODUCERS, key=KEYS, offset=OFFSETS)
    def commit_in_transaction(self, producer: int, key: Key, offset: int) -> None:
        # The harness commits in transactions as of NOW.
        self.pending.setdefault(producer, {})[key] = (offset, self._place(), NOW)
        self.logged.commit_in_transaction(producer, *key, offset)

    @rule(producer=PRODUCERS, committed=st.booleans())
    def end(self, producer: int, committed: bool) -> None:
        for key, row in self.pending.pop(producer, {}).items():
            if committed and (key not in self.committed or row[1] > self.committed[key][1]):
                self.committed[key] = row
        self.logged.end(producer, committed=committed)

    @rule(key=KEYS)
    def delete(self, key: Key) -> None:
        self._forget(key)
        self.logged.write(Decision([tombstone(*key)]))

    @rule(group_id=st.sampled_from(["g", "h"]))
    def delete_group(self, group_id: str) -> None:
        self.logged.write(Decision(self.logged.offsets.tombstones(group_id)))
        for key in [*self.committed, *(key for kept in self.pending.values() for key in kept)]:
            if key[0] == group_id:
                self._forget(key)

    @rule(topic=st.sampled_from(["t", "u"]))
    def delete_topic(self, topic: str) -> None:
        self.logged.write(self.logged.offsets.on_topics_removed([RemovedTopicName(topic, ZERO_UUID)]))
        self.logged.pass_time(0)
        for key in [*self.committed, *(key for kept in self.pending.values() for key in kept)]:
            if key[1] == topic:
                self._forget(key)

    @precondition(lambda self: self.elapsed_ms < 20 * RETENTION_MS)
    @rule()
    def let_a_minute_pass(self) -> None:
        self.elapsed_ms += RETENTION_MS
        self.logged.pass_time(RETENTION_MS)
        for key, (_, _, committed_at_ms) in list(self.committed.items()):
            if self.now_ms - committed_at_ms >= RETENTION_MS and not self._is_pending(key):
                del self.committed[key]

    @invariant()
    def what_is_told_is_what_the_model_says(self) -> None:
        for group_id in ("g", "h"):
            for topic in ("t", "u"):
                for partition in (0, 1):
                    key = (group_id, topic, partition)
                    expected = self.committed.get(key, (-1, 0, 0))[0]
                    assert self.logged.offset(*key) == expected
                    stable = self.logged.row(*key, require_stable=True)
                    assert bool(stable.error_code) == self._is_pending(key)

    @invariant()
    def another_coordinator_reads_the_same(self) -> None:
        assert state_of(self.logged.reread()) == state_of(self.logged.offsets)

    @invariant()
    def groups_with_offsets_exist(self) -> None:
        for key in [*self.committed, *(key for kept in self.pending.values() for key in kept)]:
            assert key[0] in self.logged.groups


OffsetsModel.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestOffsetsModel = OffsetsModel.TestCase
