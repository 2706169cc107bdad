"""Transactional clients: their lives, their part of the history, and the last phase of a run with them."""

from __future__ import annotations

import time
from typing import Any, Final

from tests.chaos.killed_process import Lives, ToldProcess
from tests.chaos.recorder import Recorder
from tests.chaos.stable_end import Hanging, read_committed
from tests.chaos.transactional_process import Life
from tests.chaos.workload import TOPIC, Client, decode, key
from tests.checker.history import Assign, Poll, action_of

#: What the broker needs so that a crashed client is noticed within the time that a short run has.
PROPERTIES: Final = {
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
}


class TransactionalClient(Client):
    """Processes with one transactional id, one after another."""

    def __init__(
        self, name: str, bootstrap: str, partitions: int, recorder: Recorder, seed: str, *, protocol: str
    ) -> None:
        super().__init__(name, bootstrap, partitions, recorder, seed)
        self._seed = seed
        self._protocol = protocol
        self._lives = Lives(self._start, self.random)

    def _start(self, number: int) -> ToldProcess:
        process = f"{self.name}/{number}"
        life = Life(
            self.name, process, self.bootstrap, self.partitions, self._protocol, f"{self._seed}/{number}"
        )
        told = Told(self.recorder)
        return ToldProcess(life.arguments(), told, told.end)

    def live(self, until: float) -> None:
        self._lives.live(until, self._ended)

    def join(self) -> None:
        try:
            super().join()
        finally:
            self._lives.lay_to_rest()
        if self._lives.hung_at:
            # Its library may be to blame. The last reads show what the cluster owes: no open transaction.
            self.recorder.remark(f"{self.name} did not end in time, and was in {self._lives.hung_at}")
        self.recorder.remarks["lives of transactional clients"] += self._lives.count
        self.recorder.remarks["transactional clients woken after they were replaced"] += self._lives.zombies


class Told:
    """Puts what one process tells into the history of the run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._numbers: dict[int, int] = {}
        """Its own numbers of operations that have not ended, and those of the history."""
        self._committing: set[int] = set()

    def __call__(self, row: dict[str, Any]) -> None:
        recorder = self._recorder
        if "remark" in row:
            recorder.remark(row["remark"])
            return
        if "complaint" in row:
            recorder.complain(row["complaint"])
            return
        if "committing" in row:
            self._committing.add(row["committing"])
            return
        actions = [action_of(action) for action in row["actions"]]
        if row["event"] == "invoke":
            self._numbers[row["op"]] = recorder.invoke(row["process"], row["kind"], actions)
            return
        operation, error = self._numbers.pop(row["op"]), row.get("error", "")
        match row["event"]:
            case "ok":
                recorder.ok(operation, actions)
            case "fail":
                recorder.fail(operation, error, actions)
            case _:
                recorder.unknown(operation, error, actions)

    def end(self) -> None:
        """The process is dead. What it had not asked to be committed will never be."""
        for own, operation in self._numbers.items():
            if own not in self._committing:
                self._recorder.fail(operation, "crashed before its commit")


def read_to_the_stable_end(
    name: str, bootstrap: str, partitions: int, recorder: Recorder, seconds: float
) -> None:
    """The last phase of a client: every key from its beginning, until nothing is left to read.

    No transaction may be open any more, so the stable end must be the end: one that hangs would hide
    everything behind it from the verdict.
    """
    recorder.done(name, "assign", [Assign(tuple(map(key, range(partitions))), from_beginning=True)])
    try:
        for found in read_committed(bootstrap, TOPIC, partitions, time.monotonic() + seconds):
            records = {key(p): [(at, decode(data)) for at, data in pairs] for p, pairs in found.items()}
            recorder.done(name, "poll", [Poll(records)])
    except Hanging as error:
        recorder.complain(f"{name}: {error}")
