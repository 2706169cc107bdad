"""A run of the bench as a JSON document: every sample, and the machine it came from."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from bench import apache_kafka
from bench.catalogue import CASES
from bench.interpreter import Build
from bench.quantity import Comparison, compare
from bench.runner import CaseResult

DIRECTORY = Path(__file__).resolve().parent / "results"
SCRATCH = DIRECTORY / "scratch"


def machine(python: Build | None = None) -> dict[str, Any]:
    """The Python is the one that ran the broker, if that is another than the one that runs the bench."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = Path("/proc/meminfo").read_text().split()[1]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(int(memory) * 1024 / 1e9, 1),
        "kernel": platform.release(),
        "python": python.described() if python else platform.python_version(),
        "java": _first_line("java", "-version"),
        "apache_kafka": apache_kafka.VERSION,
        "commit": _first_line("git", "rev-parse", "--short", "HEAD"),
    }


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return (done.stdout or done.stderr).partition("\n")[0]


def save(
    results: Sequence[CaseResult],
    failures: dict[str, str],
    settings: dict[str, Any],
    when: datetime,
    *,
    python: Build | None,
    scratch: bool,
) -> Path:
    directory = SCRATCH if scratch else DIRECTORY
    directory.mkdir(parents=True, exist_ok=True)
    document = {
        "when": when.isoformat(timespec="seconds"),
        "settings": settings,
        "machine": machine(python),
        "cases": {
            result.case.name: {
                "title": result.case.title,
                "ours": result.ours,
                "theirs": result.theirs,
                "rows": [_row(comparison) for comparison in result.comparisons()],
            }
            for result in results
        },
        "failures": failures,
    }
    path = directory / f"{when:%Y-%m-%dT%H%M%SZ}.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return path


def _row(comparison: Comparison) -> dict[str, Any]:
    low, high = comparison.spread
    return {
        "quantity": comparison.quantity.label,
        "unit": comparison.quantity.unit,
        "ours": comparison.our_median,
        "theirs": comparison.their_median,
        "ratio": comparison.ratio,
        "spread": [low, high],
        "target": comparison.quantity.describe_target(),
        "verdict": comparison.verdict,
    }


def load(paths: Sequence[Path]) -> list[Comparison]:
    """The comparisons of several result files; of a case that is in two of them, the later file's."""
    samples: dict[str, dict[str, Any]] = {}
    for path in paths:
        samples.update(json.loads(path.read_text())["cases"])
    rows: list[Comparison] = []
    for case in CASES:
        if found := samples.get(case.name):
            rows.extend(compare(case.name, case.title, case.quantities, found["ours"], found["theirs"]))
    return rows
