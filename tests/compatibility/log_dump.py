"""Kafka's DumpLogSegments as a judge of the files that a broker wrote."""

from __future__ import annotations

import re
from pathlib import Path

from tests.apache_kafka import KafkaTools

METADATA_LOG = "__cluster_metadata-0"

#: Every way in which the tool of 4.3.1 says that something is wrong. It still exits with 0.
_COMPLAINT = re.compile(
    r"isvalid: false|invalid bytes at the end|Mismatches in|are not found in|found log offset"
    r"|out of order timestamp|timestamp mismatch|Error at|Failed to decode|Exception|[Cc]orrupt"
)
#: The tool takes the first offset of each later segment for a gap, in Apache Kafka's own files as well.
_FIRST_OFFSET = re.compile(r"Non-consecutive offsets in .*|\s*-1 is followed by \d+")
_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
_MODES: tuple[tuple[str, ...], ...] = (
    (),
    ("--deep-iteration",),
    ("--verify-index-only",),
    ("--index-sanity-check",),
)


def files_of(log_dir: Path) -> list[Path]:
    """All files below `log_dir` that the tool can read, except partitions that wait for removal."""
    return sorted(
        path
        for path in log_dir.rglob("*")
        if path.suffix in _SUFFIXES and not path.parent.name.endswith("-delete")
    )


def _dump(tools: KafkaTools, files: list[Path], *options: str) -> list[str]:
    names = ",".join(map(str, files))
    result = tools.run("dump-log", "--files", names, *options)
    if result.status != 0 and len(files) > 1:
        # The first failure ends the tool; look at each file, to name the ones at fault.
        return [line for path in files for line in _dump(tools, [path], *options)]
    mode = " ".join(options) or "plain"
    # Most complaints are among the output; whatever is said on the error stream is one.
    said = [line for line in result.output.splitlines() if _COMPLAINT.search(line)]
    said += [
        line for line in result.errors.splitlines() if line.strip() and not _FIRST_OFFSET.fullmatch(line)
    ]
    lines = [f"{mode}: {line}" for line in said]
    if result.status != 0:
        lines.append(f"{mode}: {names} exit status {result.status}: {result.errors[-500:]}")
    # A dump that read nothing would have nothing to complain about.
    if not options:
        lines += [f"not dumped: {path}" for path in files if f"Dumping {path}" not in result.output]
    return lines


def complaints(tools: KafkaTools, log_dir: Path) -> list[str]:
    """All that the tool has against the files below `log_dir`, in each of its ways of looking."""
    files = files_of(log_dir)
    if not files:
        return [f"no files in {log_dir}"]
    ordinary = [path for path in files if path.parent.name != METADATA_LOG]
    metadata = [path for path in files if path.parent.name == METADATA_LOG and path.suffix == ".log"]
    found: list[str] = []
    for mode in _MODES:
        if ordinary:
            found += _dump(tools, ordinary, *mode)
    if metadata:
        found += _dump(tools, metadata, "--cluster-metadata-decoder")
    return found
