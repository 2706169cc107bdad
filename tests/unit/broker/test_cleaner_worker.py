"""The cleaner's process, without being one: lines in, lines out."""

from __future__ import annotations

import errno
import io
import json
import struct
import time
from pathlib import Path

import pytest

from headrace.broker.storage import cleaner_worker
from headrace.broker.storage.cleaner_worker import FAILED, GO_ON, STOP, Throttle, serve
from headrace.log.cleaner.job import (
    CleanedGroup,
    CleaningJob,
    LastOfProducer,
    PassEnd,
    SourceSegment,
    job_from_json,
    job_to_json,
    step_from_json,
    step_to_json,
)
from headrace.log.cleaner.plan import find_dirt, make_job, segments_before
from headrace.log.os_disk import OsDisk
from headrace.log.transaction_index import AbortedTransaction
from tests.unit.log.cleaner.material import LIMITS, compacted, put
from tests.unit.log.material import NOW, open_at


def job_in(root: Path) -> CleaningJob:
    log = open_at(OsDisk(), str(root), config=compacted(segment_bytes=400))
    for number in range(20):
        put(log, (b"k%d" % number, bytes(100)), (b"same", b""))
    log.roll(NOW)
    log.flush()
    dirt = find_dirt(log, 0, log.end_offset, log.recovery_point, NOW)
    return make_job(log, dirt, segments_before(log, dirt.end), LIMITS, NOW)


def answers(*lines: str) -> list[str]:
    said = io.StringIO()
    serve(io.StringIO("".join(lines)), said)
    return said.getvalue().splitlines()


def test_a_job_is_done_group_by_group_at_the_brokers_word(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    found = [step_from_json(line) for line in answers(job_to_json(job) + "\n", *[GO_ON] * 100)]
    assert isinstance(found[-1], PassEnd)
    assert found[-1].clean_until == 40
    groups = [step for step in found if isinstance(step, CleanedGroup)]
    assert len(groups) > 1
    assert sum(group.segments for group in groups) == len(job.sources)


def test_it_stops_when_it_is_told_to_and_takes_the_next_job(tmp_path: Path) -> None:
    job = job_to_json(job_in(tmp_path)) + "\n"
    assert len(answers(job, STOP)) == 1
    assert len(answers(job, STOP, job, STOP)) == 2


def test_what_fails_is_said_and_does_not_end_it(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    gone = job._replace(folder=str(tmp_path / "gone"))
    damaged = job._replace(sources=(job.sources[0]._replace(size=70), *job.sources[1:]))
    found = [json.loads(line) for line in answers(*(job_to_json(each) + "\n" for each in (gone, damaged)))]
    assert found[0][:2] == [FAILED, errno.ENOENT]
    assert found[1][:2] == [FAILED, None]


def test_a_mistake_is_said_and_does_not_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would come again with every process that is started in the place of this one."""

    def clean(*_: object) -> None:
        raise struct.error("int too large to convert")

    monkeypatch.setattr(cleaner_worker, "clean", clean)
    (found,) = [json.loads(line) for line in answers(job_to_json(job_in(tmp_path)) + "\n")]
    assert found[:2] == [FAILED, None]
    assert "too large" in found[2]


def test_jobs_and_steps_travel_unchanged() -> None:
    job = CleaningJob(
        folder="/data/t-0",
        sources=(SourceSegment(0, 100), SourceSegment(7, 200)),
        first_dirty=3,
        end=9,
        now_ms=NOW,
        delete_retention_ms=5,
        segment_bytes=1000,
        index_interval_bytes=4096,
        max_index_entries=100,
        producers={1 << 40: LastOfProducer(2, 8)},
        aborted=(AbortedTransaction(1, 2, 3, 4),),
        levels={1: -1, 4: 3},
        map_bytes=1 << 27,
        io_bytes=1 << 19,
        bytes_per_second=1.7976931348623157e308,
    )
    assert job_from_json(job_to_json(job)) == job
    group = CleanedGroup(0, 2, 0, 50, True, 300, 50, 20, 5, (3, 4))
    assert step_from_json(step_to_json(group)) == group
    end = PassEnd(9, 4, 0.5)
    assert step_from_json(step_to_json(end)) == end


def test_the_throttle_holds_its_rate() -> None:
    throttle = Throttle(1_000_000)
    began = time.monotonic()
    for _ in range(20):
        throttle(10_000)
    assert time.monotonic() - began >= 0.19
