"""Compaction against a model: Hypothesis looks for a sequence, and seeds go through thousands of them.

The latest value of each key stays, tombstones stay for their time, nothing above the promise is lost, offsets
do not change; whatever is fetched, cut off, restarted or crashed in between.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.property.compaction_model import Model
from tests.property.seeds import run_all
from tests.unit.log.fused_disk import PowerLoss

SEEDS = int(os.environ.get("HEADRACE_COMPACTION_SEEDS", "400"))
CHUNKS = 4

KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"a long key that is told apart by its digest alone" * 2])
VALUES = st.one_of(st.none(), st.binary(max_size=60))
SHARES = st.floats(0, 1)


class CompactedLog(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 1000), segment_bytes=st.sampled_from([300, 700, 3000]))
    def begin(self, seed: int, segment_bytes: int) -> None:
        self.model = Model(seed, segment_bytes=segment_bytes)

    @rule(
        pairs=st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4),
        codec=st.sampled_from([0, 0, 1, 4]),
        producer=st.integers(-1, 3),
    )
    def append(self, pairs: list[tuple[bytes | None, bytes | None]], codec: int, producer: int) -> None:
        self.model.append(pairs, codec=codec, producer=producer)

    @rule(producer=st.integers(2, 3), commit=st.booleans())
    def end_transaction(self, producer: int, commit: bool) -> None:
        self.model.end_transaction(producer, commit=commit)

    @rule(share=SHARES)
    def fetch(self, share: float) -> None:
        self.model.fetch(share)

    @rule(share=SHARES)
    def commit(self, share: float) -> None:
        self.model.commit(share)

    @rule()
    def roll(self) -> None:
        self.model.roll()

    @rule()
    def new_epoch(self) -> None:
        self.model.new_epoch()

    @rule(milliseconds=st.sampled_from([10, 400, 1001]))
    def pass_time(self, milliseconds: int) -> None:
        self.model.pass_time(milliseconds)

    @rule(share=SHARES)
    def truncate(self, share: float) -> None:
        self.model.truncate(share)

    @rule(share=SHARES)
    def delete_records(self, share: float) -> None:
        self.model.delete_records(share / 4)

    @precondition(lambda self: self.model.running is None)
    @rule(map_bytes=st.sampled_from([400, 1 << 20]))
    def begin_pass(self, map_bytes: int) -> None:
        self.model.begin_pass(map_bytes)

    @precondition(lambda self: self.model.running is not None)
    @rule()
    def step_pass(self) -> None:
        self.model.step_pass()

    @precondition(lambda self: self.model.running is not None)
    @rule(fuse=st.integers(0, 40))
    def step_until_power_loss(self, fuse: int) -> None:
        self.model.disk.fuse = fuse
        try:
            while self.model.running is not None:
                self.model.step_pass()
        except PowerLoss:
            pass
        self.model.crash()

    @rule()
    def kill(self) -> None:
        self.model.kill()

    @rule()
    def stop(self) -> None:
        self.model.stop()

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "model"):
            self.model.verify()


TestCompactedLog = CompactedLog.TestCase
TestCompactedLog.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)


def run_seed(seed: int) -> None:
    """A life that is mostly writing and cleaning, with accidents."""
    random = Random(seed)
    model = Model(seed, segment_bytes=random.choice((300, 700, 3000)))
    for _ in range(random.randint(20, 60)):
        _step(model, random)
        model.verify()


def _step(model: Model, random: Random) -> None:
    acts: tuple[tuple[int, Any], ...] = (
        (40, lambda: _append(model, random)),
        (8, lambda: model.end_transaction(random.randint(2, 3), commit=random.random() < 0.5)),
        (6, lambda: model.fetch(random.random())),
        (10, model.roll),
        (12, lambda: model.commit(random.choice((0.5, 1.0, 1.0)))),
        (3, model.new_epoch),
        (8, lambda: model.pass_time(random.choice((10, 400, 1001)))),
        (2, lambda: model.truncate(random.random())),
        (1, lambda: model.truncate_deep(random.random())),
        (2, lambda: model.delete_records(random.random() / 4)),
        (14, lambda: _clean(model, random)),
        (2, model.kill),
        (1, model.stop),
        (2, model.crash),
    )
    random.choices([act for _, act in acts], [weight for weight, _ in acts])[0]()


def _append(model: Model, random: Random) -> None:
    pairs = [
        (
            b"k%d" % random.randrange(6),
            None if random.random() < 0.2 else random.randbytes(random.randrange(60)),
        )
        for _ in range(random.randint(1, 4))
    ]
    model.append(list(pairs), codec=random.choice((0, 0, 0, 3)), producer=random.randint(-1, 3))


def _clean(model: Model, random: Random) -> None:
    """A pass, or a part of one, perhaps into a power loss."""
    if model.running is None:
        model.begin_pass(random.choice((400, 1 << 20)))
    if random.random() < 0.2:
        model.disk.fuse = random.randint(0, 60)
    try:
        for _ in range(random.choice((1, 1, 100))):
            model.step_pass()
    except PowerLoss:
        model.crash()
    model.disk.fuse = -1


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_fault_26_compaction_loses_nothing(chunk: int) -> None:
    run_all(run_seed, range(chunk, SEEDS, CHUNKS))
