"""The instruments of the bench, tried on something whose reading is known."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench import page_cache
from bench.catalogue import CASES, QUICK, select
from bench.process_cost import Meter, cpu_seconds, family, resident_bytes
from bench.profiler import pids_of, summarise

SPIN = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"


def test_cpu_of_a_child_that_has_ended_counts() -> None:
    with Meter(os.getpid()) as meter:
        subprocess.run([sys.executable, "-c", SPIN], check=True)
    assert 0.25 <= meter.cpu_s < 5.0
    assert meter.wall_s > 0.25


def test_cpu_and_memory_of_a_living_child_count() -> None:
    block = "import sys\nkept = b'x' * 50_000_000\n" + SPIN + "print('done', flush=True)\nsys.stdin.read()\n"
    before_cpu, before_memory = cpu_seconds(os.getpid()), resident_bytes(os.getpid())
    with subprocess.Popen(
        [sys.executable, "-c", block], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"done\n"
        assert child.pid in family(os.getpid())
        assert cpu_seconds(os.getpid()) - before_cpu >= 0.25
        assert resident_bytes(os.getpid()) - before_memory > 45_000_000
        child.communicate(b"")


def test_evicted_pages_are_seen_to_be_gone(tmp_path: Path) -> None:
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(os.urandom(4_000_000))
    assert page_cache.resident_fraction(tmp_path) > 0.9
    # A page under write-back cannot be dropped; on a file system in memory it never can.
    for _ in range(20):
        page_cache.evict(tmp_path)
        if page_cache.resident_fraction(tmp_path) < 0.05:
            return
        time.sleep(0.1)
    pytest.skip("this file system does not let go of pages")


def test_profile_summary_tells_own_time_from_time_below() -> None:
    lines = summarise("main (a:1);append (b:7) 10\nmain (a:2);append (b:8) 30\n").splitlines()
    own = lines[lines.index("in the line itself:") + 1]
    inside = lines[lines.index("in the function and what it calls:") + 1]
    assert own.split() == ["75.0%", "append", "(b:8)"]
    assert inside.split()[0] == "100.0%"  # whatever the line
    assert summarise("up (a:1);BaseEventLoop._run_once (l:3);work (b:7) 5\n").count("up") == 0
    assert summarise("") == "no samples: the broker was idle"


def test_cases_have_distinct_names_and_can_be_selected() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert [case.name for case in select(["small"])] == ["small-5", "small-1"]
    assert select([]) == CASES
    assert select(QUICK)
    with pytest.raises(ValueError, match="no such case: fast"):
        select(["fast"])


def test_the_brokers_that_a_case_loads_are_profiled() -> None:
    side: Any = SimpleNamespace(broker=SimpleNamespace(pid=1), cluster=SimpleNamespace(broker_pids=[2, 3, 4]))
    by_kind = {case.clustered: pids_of(case, side) for case in CASES}
    assert by_kind == {False: [1], True: [2, 3, 4]}
