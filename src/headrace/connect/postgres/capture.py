"""What is done next: a copy of the next ranges of a table, or the next stretch of the log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headrace.connect.api import ConnectorFailure, GiveUp
from headrace.connect.postgres import catalogue, copying
from headrace.connect.postgres.catalogue import Table
from headrace.connect.postgres.changes import BadChange, Changes
from headrace.connect.postgres.copying import Piece, Snapshot
from headrace.connect.postgres.coverage import Coverage, Place
from headrace.connect.postgres.database import Address, connect
from headrace.connect.postgres.envelope import Event
from headrace.connect.postgres.gate import Gate
from headrace.connect.postgres.progress import Key, Progress, Range
from headrace.connect.postgres.stream import Look, Stream
from headrace.connect.postgres.windows import LostPlace, Window, window

if TYPE_CHECKING:
    from psycopg import Connection

_SHORT: Final = 0.2


@dataclass(frozen=True)
class Choices:
    """What a capture was told."""

    name: str
    address: Address
    slot: str
    publication: str
    make_publication: bool
    tables: tuple[str, ...]
    """Empty: all of the publication."""
    copies: bool
    copy_rows: int
    copy_pieces: int
    limit: int
    """Changes in a batch, about."""
    truncates: str
    heartbeat_seconds: float


@dataclass(frozen=True)
class Stretch:
    """What a task publishes of the log. It knows all that it needs, so that it asks for nothing that may have
    changed meanwhile."""

    window: Window
    progress: Progress
    """Before it."""
    tables: Mapping[str, Table]


@dataclass(frozen=True)
class CopyPart:
    piece: Piece
    table: Table


class Next(NamedTuple):
    progress: Progress
    parts: list[Stretch | CopyPart]
    changes: int = 0
    """In a stretch, about; 0 in a copy."""
    more: bool = False


class Capture:
    """On the worker. One thread."""

    def __init__(self, choices: Choices, clock: Callable[[], float] = time.monotonic) -> None:
        self._choices = choices
        self._clock = clock
        self._connection: Connection[Any] | None = None
        self._tables: dict[str, Table] = {}
        self._identities: dict[str, str] = {}
        self._checked = clock()
        self._gate = Gate()
        self._snapshot: Snapshot | None = None
        self._beat = clock()
        self._looks = _Looks(clock)

    def next(self, known: Progress | None) -> Next | None:
        self._let_go()
        try:
            connection = self._opened(known)
            if self._is_outdated(connection):
                self.close()
                connection = self._opened(known)
            progress = self._begun(connection) if known is None else known
            stream = Stream(connection, self._choices.slot, self._choices.publication)
            found = self._next(connection, stream, known, self._captured(progress))
            return None if found is None else found._replace(progress=self._captured(found.progress))
        except (LostPlace, BadChange) as error:
            raise GiveUp(str(error)) from None
        except ConnectorFailure:
            self.close()  # the next attempt begins with a new connection, and checks everything again
            raise

    def committed(self, progress: Progress) -> None:
        """Everything before is decided: Postgres may forget it."""
        self._let_go()
        self._beat = self._clock()
        connection = self._opened(progress)
        Stream(connection, self._choices.slot, self._choices.publication).advance(progress.lsn)

    def close(self) -> None:
        self._let_go()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _let_go(self) -> None:
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None

    def _opened(self, known: Progress | None) -> Connection[Any]:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        choices = self._choices
        connection = connect(choices.address, f"headrace {choices.name}")
        try:
            catalogue.check_server(connection)
            if known is not None:
                self._check_same(connection, known)
                catalogue.check_identities(
                    choices.publication, choices.tables, self._published(connection), known
                )
            # Before the slot: pgoutput does not know publications that are younger than the changes it
            # decodes.
            self._tables = catalogue.ensure_publication(
                connection, choices.publication, choices.tables, choices.make_publication
            )
            self._identities = self._published(connection)
            self._checked = self._clock()
            slot = catalogue.slot_of(connection, choices.slot)
            if known is not None:
                catalogue.check_slot(choices.slot, slot, known)
            elif slot is None:
                catalogue.make_slot(connection, choices.slot)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _is_outdated(self, connection: Connection[Any]) -> bool:
        """Whether other tables are published than when the connection was opened. Whatever happened between
        two looks shows: a table that comes back has another identity."""
        if self._clock() - self._checked < self._choices.heartbeat_seconds:
            return False
        self._checked = self._clock()
        return self._published(connection) != self._identities

    def _published(self, connection: Connection[Any]) -> dict[str, str]:
        found = catalogue.identities(connection, self._choices.publication)
        wanted = self._choices.tables or found
        return {table: found[table] for table in wanted if table in found}

    def _captured(self, progress: Progress) -> Progress:
        return progress.only(self._tables, self._identities)

    def _check_same(self, connection: Connection[Any], known: Progress) -> None:
        system = catalogue.system_of(connection)
        if system != known.system:
            raise GiveUp(
                f"this is cluster {system} of databases, and the connector's offsets are of {known.system}: "
                "correct database.hostname, or DELETE the offsets to begin anew"
            )

    def _begun(self, connection: Connection[Any]) -> Progress:
        slot = catalogue.slot_of(connection, self._choices.slot)
        if slot is None or slot.lost:
            raise GiveUp(f"replication slot {self._choices.slot} is lost: drop it, and restart the connector")
        copied: dict[str, Key | None] = {} if self._choices.copies else dict.fromkeys(self._tables)
        return Progress(catalogue.system_of(connection), slot.confirmed, copied=copied)

    def _next(
        self, connection: Connection[Any], stream: Stream, known: Progress | None, progress: Progress
    ) -> Next | None:
        left = [table for table in self._tables if not progress.is_copied(table)]
        if left and not self._choices.copies:
            # Captured since the publication has it.
            progress, left = progress.without_copy(left), []
        # Before the stream, whatever waits there: else a busy database would never be copied. The stream
        # comes up to each copy before the next one.
        copy = self._copy_if_due(connection, progress, left)
        if copy is not None:
            return copy
        flushed = stream.flushed()
        if flushed > progress.lsn and (left or self._looks.due()):
            found = self._stretch(stream, progress, flushed)
            if isinstance(found, Next):
                return found
            progress = found
            copy = self._copy_if_due(connection, progress, left)
            if copy is not None:
                return copy
        moved = known is None or progress.lsn > known.lsn
        due = known is None or known.fresh != progress.fresh or self._is_beat_due()
        return Next(progress, [], more=bool(left)) if moved and due else None

    def _copy_if_due(self, connection: Connection[Any], progress: Progress, left: list[str]) -> Next | None:
        if not left or progress.fresh is not None or progress.transaction is not None:
            return None
        ready = self._gate.open_for(connection, left)
        return self._copy(connection, progress, ready) if ready else None

    def _stretch(self, stream: Stream, progress: Progress, flushed: int) -> Next | Progress:
        """A stretch with changes, or how far there are none."""
        look = self._looks.timed(lambda: self._look(stream, progress, flushed))
        if look.unseen is not None and look.unseen <= progress.lsn:
            return progress  # it will be visible in a moment
        found = window(progress, look.end, look.summary, self._choices.limit)
        if found is None:
            return progress.passed(look.end)
        chosen, after = found
        changes = min(look.summary.changes, (chosen.most or look.summary.changes) - chosen.skip)
        return Next(after, [Stretch(chosen, progress, self._tables)], changes, more=True)

    def _look(self, stream: Stream, progress: Progress, flushed: int) -> Look:
        look = stream.look(progress.lsn, flushed, self._choices.limit)
        if look.unseen is not None and look.unseen > progress.lsn:
            return stream.look(progress.lsn, look.unseen, self._choices.limit)
        return look

    def _copy(self, connection: Connection[Any], progress: Progress, ready: set[str]) -> Next:
        choices = self._choices
        chosen = sorted(ready)[: choices.copy_pieces]
        stored = copying.storages(connection, chosen)
        self._snapshot = copying.take_snapshot(choices.address, f"headrace {choices.name} copy")
        # Their columns may be other ones than when the connection was opened.
        tables = catalogue.published_tables(self._snapshot.connection, choices.publication, chosen)
        if len(tables) < len(chosen):
            raise ConnectorFailure(f"publication {choices.publication} was changed meanwhile")
        self._tables.update(tables)
        copy = copying.next_copy(
            connection, self._snapshot, progress, tables, stored, choices.copy_pieces, choices.copy_rows
        )
        parts: list[Stretch | CopyPart] = [CopyPart(each, self._tables[each.table]) for each in copy.pieces]
        return Next(progress.with_copy(copy.fresh), parts, more=True)

    def _is_beat_due(self) -> bool:
        return self._clock() - self._beat >= self._choices.heartbeat_seconds


class _Looks:
    """Where nothing comes of looks that take long, because the log that moves is other people's, they are
    made less often."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._not_before = float("-inf")

    def due(self) -> bool:
        return self._clock() >= self._not_before

    def timed(self, look: Callable[[], Look]) -> Look:
        began = self._clock()
        found = look()
        took = self._clock() - began
        empty = found.summary.first is None and took > _SHORT
        self._not_before = self._clock() + (4 * took if empty else 0)
        return found


@dataclass
class Reading:
    """In a task, or on the worker where there is little to read."""

    choices: Choices
    _connection: Any = field(default=None)

    def events(self, part: Stretch | CopyPart) -> Iterator[Event]:
        connection = self._connection = connect(self.choices.address, f"headrace {self.choices.name} task")
        try:
            if isinstance(part, CopyPart):
                yield from copying.copied(connection, part.piece, part.table)
            else:
                yield from self._changes(connection, part)
        finally:
            self.close()

    def _changes(self, connection: Connection[Any], part: Stretch) -> Iterator[Event]:
        # While a cursor is open on one connection, keys are compared on another.
        comparing: list[Connection[Any]] = []

        def places(table: str, keys: Any, here: Range) -> list[Place]:
            if not comparing:
                comparing.append(connect(self.choices.address, f"headrace {self.choices.name} task"))
            return copying.places(comparing[0], part.tables[table], keys, here)

        try:
            coverage = Coverage(part.progress, frozenset(part.tables), places)
            changes = Changes(part.window, coverage, catalogue.keys_of(part.tables), self.choices.truncates)
            stream = Stream(connection, self.choices.slot, self.choices.publication)
            yield from changes.events(stream.data(part.window.end))
        finally:
            for each in comparing:
                each.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
