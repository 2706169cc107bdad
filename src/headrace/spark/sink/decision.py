"""What a sink has decided, and what follows from it. Nothing here asks a broker.

A decision says which transactions make up a batch. It is the last word: once it is written, they are
committed, however often that takes; before it is, they are aborted. There is one decision for each sink, the
last. A mark says that all transactions of a decision were committed, so that nobody has to ask again.

Whoever runs jobs can give each decision a note of his own, such as how far he has read what he writes. It is
committed by the record that makes the batch exist, so that neither is ever there without the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from headrace.client.transaction_ends import Fate, Identity
from headrace.core.errors import HeadraceError


class SinkFailure(HeadraceError):
    """Why a batch cannot be written, and what to do."""


class TopicRefuses(SinkFailure):
    """The target refuses the rows of one topic, and would again: those of other topics may be written."""

    def __init__(self, topic: str, text: str) -> None:
        super().__init__(text)
        self.topic = topic


class Written(NamedTuple):
    """What one task wrote."""

    identity: Identity
    rows: int
    checksum: str | None
    """None where it was not computed, because the transaction cannot time out."""

    def holds_same_rows(self, other: Written) -> bool:
        return self.checksum is not None and (self.rows, self.checksum) == (other.rows, other.checksum)


class Run(NamedTuple):
    """One attempt at one batch: the right to decide, and the names its tasks use."""

    decider: Identity
    """Of the producer of decisions. A later run has a higher epoch, and this one can decide no more."""
    number: int
    """Of the decision that it may make."""
    deciding_ms: int = 60_000
    """How long a decision may stay open."""

    @property
    def slot(self) -> int:
        """Names alternate between two: those of the last decision are never taken while it may matter."""
        return self.number % 2


class Decision(NamedTuple):
    number: int
    query: str
    batch: int
    decider: Identity
    transactions: tuple[Written, ...]
    """None where nothing was written, and only the note is new."""
    decided_ms: int
    note: str | None = None
    before: str | None = None
    """The note of the decision before this one. A batch that was lost is written again from there."""

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.transactions)


class State(NamedTuple):
    """All that the topic of decisions says about a sink."""

    decision: Decision | None = None
    ended: int = -1
    """The number of the last decision whose transactions were all seen committed."""

    @property
    def unended(self) -> Decision | None:
        decision = self.decision
        return decision if decision is not None and decision.number > self.ended else None

    @property
    def next_number(self) -> int:
        return 0 if self.decision is None else self.decision.number + 1


class Course(Enum):
    DECIDE = "decide"
    """The batch is new."""
    REPLAY = "replay"
    """The batch is written already: what was written now is aborted."""
    REPAIR = "repair"
    """The batch is decided, but some of it was lost: what was written now replaces it."""


def course(state: State, query: str, batch: int, lost: Sequence[Written]) -> Course:
    """What to do with a batch whose tasks are done; `lost` are transactions of the last decision."""
    last = state.decision
    if last is None or last.query != query:
        if lost:
            raise _lost_for_good(last, lost)
        return Course.DECIDE
    if batch < last.batch:
        raise SinkFailure(
            f"batch {batch} of query {query} comes after batch {last.batch}, which is decided: the "
            "checkpoint is older than what was written. Continue from the newer checkpoint. To write "
            "everything again on purpose, use a new checkpoint, or another sink.id"
        )
    if batch > last.batch:
        if lost:
            raise _lost_for_good(last, lost)
        return Course.DECIDE
    return Course.REPAIR if lost else Course.REPLAY


def replacements(decision: Decision, lost: Sequence[Written], found: Sequence[Written]) -> list[Written]:
    """Which of the `found`, written again, take the place of the `lost`: those with the same rows.

    Which task holds which rows may differ from one run to the next, so only the rows are compared.
    """
    if len(lost) == len(decision.transactions):
        # Nothing of the batch is there. It can be written as if it were new, however it is cut now.
        return list(found)
    left = list(found)
    chosen = []
    for each in lost:
        match = next((other for other in left if other.holds_same_rows(each)), None)
        if match is None:
            raise _unrepairable(decision, lost)
        left.remove(match)
        chosen.append(match)
    return chosen


def survivors(decision: Decision, lost: Sequence[Written]) -> tuple[Written, ...]:
    """What a repair leaves as it is. Its decision names them too. Were the replacements alone in it, and lost
    as well, nothing of the batch would seem to be there, and all of it would be written again."""
    return tuple(each for each in decision.transactions if each not in lost)


def note_before(state: State, what: Course) -> str | None:
    """Of the decision before the one that is to be made. A repair is the same batch again."""
    last = state.decision
    if last is None:
        return None
    return last.before if what is Course.REPAIR else last.note


def lost_of(decision: Decision, fates: Iterable[Fate]) -> list[Written]:
    """The transactions that cannot be committed any more. Raises where nobody can tell."""
    lost = []
    for each, fate in zip(decision.transactions, fates, strict=True):
        if fate is Fate.ABORTED:
            lost.append(each)
        elif fate is Fate.UNKNOWN:
            raise SinkFailure(
                f"the cluster does not know what became of transaction {each.identity.transactional_id}, "
                f"which holds {each.rows} rows of batch {decision.batch}: somebody else has used its name, "
                "or it was forgotten. Compare the topic with the input of that batch, then go on with "
                "another sink.id"
            )
    return lost


def check_open(written: Sequence[Written], fates: Iterable[Fate]) -> None:
    """Nothing may be decided about a transaction that is not open any more."""
    for each, fate in zip(written, fates, strict=True):
        if fate is not Fate.OPEN:
            raise SinkFailure(
                f"transaction {each.identity.transactional_id} is {fate.value} before the batch was decided: "
                "a task took longer than the cluster leaves a transaction open (transaction.max.timeout.ms), "
                "or another driver writes with the same sink.id. Make the batches smaller "
                "(maxOffsetsPerTrigger), raise that limit, or let the cluster grant two-phase transactions "
                "(transaction.two.phase.commit.enable=true on Headrace)"
            )


def _lost_for_good(decision: Decision | None, lost: Sequence[Written]) -> SinkFailure:
    batch = "?" if decision is None else decision.batch
    rows = sum(each.rows for each in lost)
    return SinkFailure(
        f"{rows} rows of batch {batch} were decided but timed out before they were committed, and the query "
        f"has gone on: they cannot be written again. Restart the query from its checkpoint at batch {batch}"
    )


def _unrepairable(decision: Decision, lost: Sequence[Written]) -> SinkFailure:
    rows = sum(each.rows for each in lost)
    return SinkFailure(
        f"batch {decision.batch} was decided, but {rows} of its rows timed out before they were committed, "
        "and the tasks of the repeated batch do not hold the same sets of rows: the number of partitions has "
        "changed, or the query gives other rows each time. Restart it with the settings it had "
        "(spark.sql.shuffle.partitions, adaptive execution), or repair the topic by hand and use another "
        "sink.id"
    )


# --- as bytes -------------------------------------------------------------------------------------------


def encode_decision(decision: Decision) -> bytes:
    decider = decision.decider
    document: dict[str, Any] = {
        "number": decision.number,
        "query": decision.query,
        "batch": decision.batch,
        "decided_ms": decision.decided_ms,
        "decider": list(decider),
        "rows": decision.rows,
        "transactions": [[*each.identity, each.rows, each.checksum] for each in decision.transactions],
    }
    notes = {"note": decision.note, "before": decision.before}
    document |= {name: text for name, text in notes.items() if text is not None}
    return json.dumps(document, separators=(",", ":")).encode()


def decode_decision(data: bytes) -> Decision:
    try:
        found: dict[str, Any] = json.loads(data)
        return Decision(
            found["number"],
            found["query"],
            found["batch"],
            Identity(*found["decider"]),
            tuple(
                Written(Identity(name, producer_id, epoch), rows, checksum)
                for name, producer_id, epoch, rows, checksum in found["transactions"]
            ),
            found["decided_ms"],
            found.get("note"),
            found.get("before"),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise SinkFailure(f"the topic of decisions holds one that cannot be read: {error!r}") from None


def encode_ended(number: int) -> bytes:
    return str(number).encode()


def decode_ended(data: bytes) -> int:
    return int(data)
