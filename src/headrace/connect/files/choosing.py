"""Which files are read next, and how they are shared among tasks. Pure.

A file is read once, by its name, when two looks at it saw the same: whoever writes a file in a directory does
it over a while, and an object appears whole. A file of which something was published must not change after
that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from headrace.connect.api import ConnectorFailure, GiveUp
from headrace.connect.files.seen import MOST_FILES, Begun, FoundFile, Seen


class Slice(NamedTuple):
    """Of a file, for one task: bytes from `begin` to `end`, which are whole records."""

    file: FoundFile
    begin: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin


class Quiet:
    """Remembers what the last looks saw. It forgets at a restart: then a file is looked at twice again."""

    def __init__(self, milliseconds: int) -> None:
        self._nanoseconds: Final = milliseconds * 1_000_000
        self._since: dict[str, tuple[FoundFile, int]] = {}

    def of(self, files: Iterable[FoundFile], now_ns: int) -> list[FoundFile]:
        """Those that have been as they are for long enough, by a clock that only goes forward."""
        if not self._nanoseconds:
            return list(files)
        since: dict[str, tuple[FoundFile, int]] = {}
        quiet = []
        for each in files:
            before, began = self._since.get(each.path, (each, now_ns))
            began = began if before == each else now_ns
            since[each.path] = (each, began)
            if now_ns - began >= self._nanoseconds:
                quiet.append(each)
        self._since = since
        return quiet


class Listed(NamedTuple):
    """A look at the directory, by what was read of it."""

    fresh: list[FoundFile]
    """The oldest first."""
    read: list[FoundFile]
    changed: list[FoundFile]
    """After they were read."""


def sorted_out(files: Sequence[FoundFile], seen: Seen) -> Listed:
    found = Listed([], [], [])
    for each in sorted(files, key=lambda file: (file.modified_ns, file.path)):
        known = seen.version(each)
        if known is None:
            found.fresh.append(each)
        elif known == each.version:
            found.read.append(each)
        else:
            found.changed.append(each)
    return found


def check_unchanged(changed: Sequence[FoundFile], place: str) -> None:
    """Raises ConnectorFailure: it goes on by itself when the file is gone."""
    if changed:
        first = changed[0]
        more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise ConnectorFailure(
            f"{place}/{first.path}{more} changed after it was read: it has {first.size} bytes now. A file is "
            "read once, by its name. Give what is new to a file with another name and take this one away, or "
            "pass over it with changed.files=skip"
        )


def check_begun(begun: Begun, files: Iterable[FoundFile], place: str) -> FoundFile:
    """The file to go on with. Raises GiveUp if it is not what it was."""
    found = next((each for each in files if each.path == begun.path), None)
    if found is not None and found.version == begun.version:
        return found
    what = "is gone" if found is None else "has changed"
    raise GiveUp(
        f"{place}/{begun.path} {what} after its first {begun.at} bytes were published. Bring it back as "
        "it was and restart the connector; or stop it, take `begun` out of the offset of its directory "
        "with PATCH /connectors/NAME/offsets, and resume it: then a file of that name is read from its "
        "beginning"
    )


def check_memory(seen: Seen, files: Sequence[FoundFile]) -> Seen:
    """Files that are gone are forgotten only when there are many: a directory can be empty for a moment,
    because it is not mounted. Raises GiveUp."""
    if len(seen) <= MOST_FILES:
        return seen
    left = seen.only(files)
    if len(left) <= MOST_FILES:
        return left
    raise GiveUp(
        f"{len(left)} files were read and are still there, and no more than {MOST_FILES} can be remembered. "
        "Move or delete files that were read (files.after.reading=delete does), then restart the connector"
    )


EndOfRecords = Callable[[FoundFile, int, int], int]
"""(file, begin, limit): where the last whole record before the limit ends, or the first one behind it."""


class Chosen(NamedTuple):
    slices: list[Slice]
    seen: Seen
    """After them."""
    more: bool


def choose(
    fresh: Sequence[FoundFile],
    going_on: FoundFile | None,
    seen: Seen,
    limit: int,
    end_of_records: EndOfRecords | None,
) -> Chosen:
    """About `limit` bytes, and at least one file. What is larger comes in several steps where records can be
    found in its middle; `end_of_records` is None where they cannot."""
    slices: list[Slice] = []
    done: list[FoundFile] = []
    begun: Begun | None = None
    left = limit
    waiting = [going_on] if going_on is not None else []
    waiting += [each for each in fresh if going_on is None or each.path != going_on.path]
    for each in waiting:
        begin = seen.begun.at if each is going_on and seen.begun is not None else 0
        if slices and (left <= 0 or each.size - begin > left):
            break
        end = each.size
        if end_of_records is not None and end - begin > limit:
            end = min(end, end_of_records(each, begin, begin + limit))
        slices.append(Slice(each, begin, end))
        left -= end - begin
        if end < each.size:
            begun = Begun(each.path, each.version, end)
            break
        done.append(each)
    more = begun is not None or len(done) < len(waiting)
    return Chosen(slices, seen.with_read(done, begun), more)


def shared(slices: Sequence[Slice], tasks: int) -> list[list[Slice]]:
    """For each task neighbours, of about as many bytes as the others'."""
    if not slices:
        return []
    share = max(1, -(-sum(each.size for each in slices) // max(1, tasks)))
    found: list[list[Slice]] = [[]]
    taken = 0
    for each in slices:
        if found[-1] and taken >= share and len(found) < tasks:
            found.append([])
            taken = 0
        found[-1].append(each)
        taken += each.size
    return found
