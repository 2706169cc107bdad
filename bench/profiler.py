"""Where a broker's CPU goes during a case: py-spy for Python frames, perf for native ones and the kernel."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from bench.case import Case, Side

TOP = 25
LOOP_TURN = "BaseEventLoop._run_once"
LINE_NUMBER = re.compile(r":\d+\)$")


def profile(case: Case, side: Side, directory: Path, *, native: bool, with_perf: bool) -> str:
    """Warm the case, record one run of it, and return a summary; the recordings stay in the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    case.prepare(side)
    try:
        case.run(side)
        summary = _record_python(case, side, directory, native=native)
        if with_perf:
            summary += "\n" + _record_perf(case, side, directory)
    finally:
        case.finish(side)
    return summary


def _record_python(case: Case, side: Side, directory: Path, *, native: bool) -> str:
    pids = pids_of(case, side)
    stacks = [directory / f"{case.name}{_suffix(place, pids)}.stacks.txt" for place in range(len(pids))]
    commands = []
    for pid, file in zip(pids, stacks, strict=True):
        command = [str(Path(sys.executable).parent / "py-spy"), "record", "--pid", str(pid)]
        command += ["--rate", "200", "--duration", "3600", "--format", "raw", "--output", str(file)]
        commands.append([*command, *(["--native"] if native else [])])
    _run_under(commands, case, side)
    return _together([summarise(file.read_text()) for file in stacks])


def _record_perf(case: Case, side: Side, directory: Path) -> str:
    data = directory / f"{case.name}.perf"
    pids = ",".join(map(str, pids_of(case, side)))
    command = ["perf", "record", "-e", "cpu-clock", "-F", "499", "-p", pids, "-o", str(data)]
    _run_under([command], case, side)
    report = subprocess.run(
        ["perf", "report", "-i", str(data), "--stdio", "--sort", "dso,symbol"], capture_output=True, text=True
    )
    lines = [line for line in report.stdout.splitlines() if line.strip() and not line.startswith("#")]
    return "perf, share of samples by symbol:\n" + "\n".join(lines[:TOP])


def pids_of(case: Case, side: Side) -> list[int]:
    """The brokers that the case loads: all of its cluster, of which any may lead."""
    return side.cluster.broker_pids if case.clustered else [side.broker.pid]


def _suffix(place: int, pids: list[int]) -> str:
    return f".broker-{place + 1}" if len(pids) > 1 else ""


def _together(summaries: list[str]) -> str:
    if len(summaries) == 1:
        return summaries[0]
    return "\n\n".join(f"broker {number}: {text}" for number, text in enumerate(summaries, 1))


def _run_under(commands: list[list[str]], case: Case, side: Side) -> None:
    recorders = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for command in commands
    ]
    try:
        case.run(side)
    finally:
        for recorder in recorders:
            recorder.send_signal(signal.SIGINT)
        for recorder in recorders:
            recorder.wait(60)


def _below_the_loop(frames: list[str]) -> int:
    """Where the work begins: what leads to the event loop's turn is in every stack and tells nothing."""
    turns = [position for position, frame in enumerate(frames) if LOOP_TURN in frame]
    return turns[-1] + 1 if turns and turns[-1] + 1 < len(frames) else 0


def summarise(folded: str) -> str:
    """The heaviest lines and functions of folded stacks ("frame;frame;frame count" per line)."""
    own: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    total = 0
    for line in folded.splitlines():
        stack, _, count_text = line.rpartition(" ")
        frames, count = stack.split(";"), int(count_text)
        total += count
        own[frames[-1]] += count
        for frame in {LINE_NUMBER.sub(")", frame) for frame in frames[_below_the_loop(frames) :]}:
            inside[frame] += count
    if not total:
        return "no samples: the broker was idle"

    def top(counter: Counter[str]) -> list[str]:
        return [f"{count / total:7.1%}  {frame}" for frame, count in counter.most_common(TOP)]

    return "\n".join(
        [
            f"{total} samples",
            "in the line itself:",
            *top(own),
            "in the function and what it calls:",
            *top(inside),
        ]
    )
