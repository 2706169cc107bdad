"""What a client told before it died is in the history, and nothing that it did not tell."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from tests.chaos.killed_process import Lives, ToldProcess
from tests.chaos.recorder import Recorder
from tests.chaos.transactional_client import Told
from tests.chaos.transactional_producer import callbacks_told_apart
from tests.checker.history import Outcome, Send
from tests.cluster_process import eventually

TELLS_AND_STAYS = """
import sys, time
sys.stdout.write('{"n": 1}\\n{"n": 2}\\n{"n": ')
sys.stdout.flush()
time.sleep(60)
"""
COUNTS = """
import itertools, sys, time
for n in itertools.count():
    print('{"n": %d}' % n, flush=True)
    time.sleep(0.02)
"""


def test_a_line_that_was_cut_off_by_a_kill_is_not_told() -> None:
    told: list[dict[str, Any]] = []
    ends: list[int] = []
    process = ToldProcess(["-S", "-c", TELLS_AND_STAYS], told.append, lambda: ends.append(len(told)))
    eventually(lambda: len(told) == 2, 20, "it has told something")
    process.end(gently=False)
    assert told == [{"n": 1}, {"n": 2}]
    assert ends == [2], "the end comes once, after everything that was told"


def test_a_client_that_fails_by_itself_is_no_crash_that_was_wanted() -> None:
    process = ToldProcess(["-S", "-c", "raise SystemExit('broken')"], lambda _: None)
    eventually(lambda: not process.running, 20, "it has ended")
    with pytest.raises(RuntimeError, match="broken"):
        process.end(gently=False)


class AlwaysStops(random.Random):
    def random(self) -> float:
        return 0.0


def test_one_that_was_stopped_wakes_while_its_successor_lives() -> None:
    told: dict[int, list[int]] = {1: [], 2: []}

    def start(number: int) -> ToldProcess:
        return ToldProcess(["-S", "-c", COUNTS], lambda row: told[number].append(row["n"]))

    lives = Lives(start, AlwaysStops(1))
    never = threading.Event()
    lives.live(time.monotonic() + 1.0, never)
    asleep = len(told[1])
    lives.live(time.monotonic() + 6.0, never)
    assert asleep > 0
    assert len(told[1]) > asleep + 10, "it has not told anything after it was woken"
    lives.lay_to_rest()
    assert (lives.count, lives.zombies) == (2, 2)


def _row(event: str, op: int, **more: Any) -> dict[str, Any]:
    return {"event": event, "op": op, "process": "t/1", "kind": "transaction", "actions": [], **more}


def test_what_was_never_asked_to_be_committed_has_failed_when_the_client_is_dead(tmp_path: Path) -> None:
    with Recorder(tmp_path / "history.jsonl") as recorder:
        told = Told(recorder)
        for op in range(4):
            told(_row("invoke", op, actions=[["send", "x-0", op, None]]))
        told(_row("ok", 0, actions=[["send", "x-0", 0, 7]]))
        told({"committing": 1})
        told({"committing": 2})
        told(_row("unknown", 2, error="time-out", actions=[["send", "x-0", 2, None]]))
        told.end()
        outcomes = [operation.outcome for operation in recorder.history.operations]
        assert outcomes == [Outcome.OK, Outcome.UNKNOWN, Outcome.UNKNOWN, Outcome.FAIL]
        assert recorder.history.operations[0].actions == (Send("x-0", 0, 7),)
        assert not recorder.history.operations[1].ended


def test_an_error_for_good_that_was_raised_before_a_callback_is_what_it_is() -> None:
    with pytest.raises(KafkaException, match="fenced"), callbacks_told_apart():
        raise SystemError("returned a result with an exception set") from KafkaException("fenced")
    with pytest.raises(SystemError), callbacks_told_apart():
        raise SystemError("of another kind")
