"""`headrace log verify`: what is wrong with the files of a log directory, and what to do next."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

import click

from headrace.broker.cluster import description
from headrace.broker.process.system import boot_id
from headrace.cli.render import print_json
from headrace.cli.values import counted
from headrace.client.errors import ClientFailure
from headrace.core.ids import NO_TOPIC_ID, TopicPartition
from headrace.log import checkpoints, claims_file, files
from headrace.log.claims_file import FirstBatch
from headrace.log.os_disk import ReadOnlyOsDisk
from headrace.log.side_files import SideFiles
from headrace.log.verification import FETCH_ANEW, Finding, Verdict, verify_partition
from headrace.log.wholeness import Claims

Offsets = Mapping[TopicPartition, int]
WRITTEN_AGAIN: Final = "nothing to do if the partitions below are whole: the broker writes it again"

PUT_BACK: Final = (
    "put it back from a copy, or from another log directory of this broker, whose directory.id alone is"
    " another, before the broker starts: it may refuse to start"
)
_IDENTITY: Final = ("version", "cluster.id", "node.id", "directory.id")
_ANY_ID: Final = "A" * 22


class _Directory(NamedTuple):
    path: Path
    partitions: dict[TopicPartition, Path]
    recovery_points: Offsets
    log_starts: Offsets
    high_watermarks: Offsets
    first_batches: Mapping[TopicPartition, FirstBatch]
    topic_ids: Mapping[TopicPartition, UUID]
    beside_last: Mapping[TopicPartition, SideFiles]
    """Of logs that were closed, which are all that it names."""
    lost_nothing: bool
    """The last stop was clean, or the host has stayed up since."""
    findings: tuple[Finding, ...]
    """Of the directory itself."""


def verify_directory(path: str, *, as_json: bool) -> int:
    directory = _look(Path(path))
    _require_stopped(directory.path)
    size = sum(_size(folder) for folder in directory.partitions.values())
    verdicts = []
    with _progress(size) as on_read:
        for partition, folder in sorted(directory.partitions.items()):
            claims = Claims(
                directory.recovery_points.get(partition, 0),
                directory.log_starts.get(partition, 0),
                directory.high_watermarks.get(partition, 0),
                lost_nothing=directory.lost_nothing,
                first_batch=directory.first_batches.get(partition),
                side=directory.beside_last.get(partition, SideFiles()),
                was_closed=partition in directory.beside_last,
                topic_id=directory.topic_ids.get(partition, NO_TOPIC_ID),
            )
            verdicts.append(_verify(str(folder), partition, claims, on_read))
    whole = all(verdict.is_whole for verdict in verdicts) and not any(
        found.is_damage for found in directory.findings
    )
    if as_json:
        print_json(_document(path, whole, directory.findings, verdicts))
    else:
        _print(path, whole, directory.findings, verdicts)
    return int(not whole)


def _verify(
    folder: str, partition: TopicPartition, claims: Claims, on_read: Callable[[int], None]
) -> Verdict:
    try:
        return verify_partition(ReadOnlyOsDisk(), folder, partition, claims, on_read)
    except OSError as error:  # of this one; the others are still looked at
        problem = f"it cannot be read: {error.strerror or error}"
        found = Finding(error.filename or folder, problem, FETCH_ANEW, is_damage=True)
        return Verdict(partition, folder, 0, 0, 0, 0, (found,))


def _look(path: Path) -> _Directory:
    """The directory that holds the partition, if a partition's folder is given."""
    path = path.resolve()
    single = files.parse_directory(path.name)
    if single is not None and not any(files.parse_directory(each.name) for each in path.iterdir()):
        return _read(path.parent, {single: path}, only=True)
    named = {each: files.parse_directory(each.name) for each in path.iterdir() if each.is_dir()}
    found = {partition: each for each, partition in named.items() if partition is not None}
    if not found:
        raise ClientFailure(
            f"{path} holds no partitions",
            "name a log directory of a broker, or a folder in it, as DATA/orders-0",
        )
    return _read(path, found, only=False)


def _read(path: Path, partitions: dict[TopicPartition, Path], *, only: bool) -> _Directory:
    findings: list[Finding] = _identity_findings(path)
    loaded = []
    for name in (checkpoints.RECOVERY_POINTS, checkpoints.LOG_START_OFFSETS, checkpoints.HIGH_WATERMARKS):
        offsets: Offsets = {}
        try:
            offsets = checkpoints.parse_offsets((path / name).read_bytes())
        except FileNotFoundError:
            pass
        except checkpoints.CorruptCheckpoint as error:
            findings.append(
                Finding(str(path / name), f"it cannot be read: {error}", WRITTEN_AGAIN, is_damage=False)
            )
        loaded.append(offsets)
    first_batches: dict[TopicPartition, FirstBatch] = {}
    topic_ids: dict[TopicPartition, UUID] = {}
    beside_last: dict[TopicPartition, SideFiles] = {}
    was_stopped_cleanly = (path / checkpoints.CLEAN_SHUTDOWN).exists()
    try:
        said = claims_file.load(ReadOnlyOsDisk(), str(path))
        problem = "it is damaged" if said is None and (path / claims_file.NAME).exists() else ""
    except OSError as error:
        said, problem = None, f"it cannot be read: {error.strerror or error}"
    if problem:
        findings.append(Finding(str(path / claims_file.NAME), problem, WRITTEN_AGAIN, is_damage=False))
    if said is not None:  # it has a checksum: a broker believes it, and not the others
        first_batches = {name: each.first_batch for name, each in said.logs.items() if each.first_batch}
        topic_ids = {name: each.topic_id for name, each in said.logs.items()}
        if was_stopped_cleanly:
            beside_last = {name: each.side for name, each in said.logs.items()}
        loaded[1] = {partition: each.log_start_offset for partition, each in said.logs.items()}
        loaded[2] = {partition: each.high_watermark for partition, each in said.logs.items()}
    if not only:
        findings += [
            Finding(
                str(path / str(partition)),
                "the folder is missing",
                FETCH_ANEW,
                is_damage=True,
            )
            for partition in sorted({*loaded[0], *loaded[2]})
            if max(loaded[0].get(partition, 0), loaded[2].get(partition, 0)) > loaded[1].get(partition, 0)
            and partition not in partitions
        ]
    recovery_points, log_starts, high_watermarks = loaded
    return _Directory(
        path,
        partitions,
        recovery_points,
        log_starts,
        high_watermarks,
        first_batches,
        topic_ids,
        beside_last,
        was_stopped_cleanly or _host_stayed_up(path),
        tuple(findings),
    )


def _host_stayed_up(path: Path) -> bool:
    """As the broker asks at its start. It then takes nothing but half of a last batch for unwritten."""
    remembered = description.recall(ReadOnlyOsDisk(), [str(path)])
    return remembered is not None and description.is_same_boot(remembered, boot_id())


def _identity_findings(path: Path) -> list[Finding]:
    """What is wrong with the file that says whose directory it is. One id in it may have become another:
    that shows when the broker starts."""
    meta = path / checkpoints.META_PROPERTIES
    try:
        said = checkpoints.parse_properties(meta.read_bytes())
    except FileNotFoundError:
        return [Finding(str(meta), "it is missing", PUT_BACK, is_damage=False)]
    except OSError as error:
        return [
            Finding(str(meta), f"it cannot be read: {error.strerror or error}", PUT_BACK, is_damage=False)
        ]
    problems = [f"it has no {name}" for name in _IDENTITY if not said.get(name)]
    if said.get("version", "1") != "1":
        problems.append(f"its version is {said['version']}, not 1")
    if not said.get("node.id", "0").isdecimal():
        problems.append(f"node.id is {said['node.id']!r}, which is no number")
    try:
        checkpoints.decode_uuid(said.get("directory.id", _ANY_ID))
    except checkpoints.CorruptCheckpoint as error:
        problems.append(f"directory.id: {error}")
    return [Finding(str(meta), problem, PUT_BACK, is_damage=False) for problem in problems[:1]]


def _require_stopped(path: Path) -> None:
    """What a broker is writing looks torn."""
    try:
        descriptor = os.open(path / checkpoints.LOCK, os.O_RDONLY)
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ClientFailure(
            f"a broker uses {path}", "stop it first, or verify a copy that was made while it was stopped"
        ) from None
    finally:
        os.close(descriptor)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob(f"*{files.LOG}"))


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; elsewhere nothing, so that a script's log stays clean."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("verifying"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("verifying", total=total)
        yield lambda size: progress.advance(task, size)


def _print(path: str, whole: bool, findings: tuple[Finding, ...], verdicts: list[Verdict]) -> None:
    for found in findings:
        _print_finding(found)
    for verdict in verdicts:
        state = "whole" if verdict.is_whole else "DAMAGED"
        click.echo(
            f"{verdict.partition}: {state}, offsets {verdict.log_start_offset} to {verdict.end_offset}, "
            f"{verdict.segments} segments, {verdict.size} bytes"
        )
        for found in verdict.findings:
            _print_finding(found)
    missing = sum(found.is_damage for found in findings)
    damaged = missing + sum(not verdict.is_whole for verdict in verdicts)
    total = missing + len(verdicts)
    if whole:
        click.echo(f"{path} is whole: {counted(total, 'partition')}")
    else:
        click.echo(f"{path} is damaged: {damaged} of {total} partitions are not whole", err=True)


def _print_finding(found: Finding) -> None:
    kind = "damage" if found.is_damage else "note"
    click.echo(f"  {kind}: {found.path}: {found.problem}")
    click.echo(f"  next: {found.next_step}")


def _document(
    path: str, whole: bool, findings: tuple[Finding, ...], verdicts: list[Verdict]
) -> dict[str, Any]:
    return {
        "directory": path,
        "whole": whole,
        "findings": [found._asdict() for found in findings],
        "partitions": [
            {
                **verdict._asdict(),
                "partition": str(verdict.partition),
                "whole": verdict.is_whole,
                "findings": [found._asdict() for found in verdict.findings],
            }
            for verdict in verdicts
        ],
    }
