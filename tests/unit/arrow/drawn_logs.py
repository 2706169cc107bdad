"""Logs with every compression, transactions that end or do not, compaction and gaps, by Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from headrace.protocol.records import NewRecord
from tests.unit.arrow.written_logs import WrittenLog

PRODUCERS = (7, 8)
_NULLABLE = st.one_of(st.none(), st.binary(max_size=40))
_HEADERS = st.lists(st.tuples(st.text(max_size=4), _NULLABLE), max_size=2).map(tuple)
_RECORDS = st.lists(
    st.builds(NewRecord, _NULLABLE, _NULLABLE, st.integers(0, 1000), _HEADERS), min_size=1, max_size=6
)
_EVENTS = st.sampled_from(("plain", "plain", "transactional", "commit", "abort", "roll", "gap"))


@st.composite
def logs(draw: st.DrawFn) -> WrittenLog:
    log = WrittenLog(draw(st.sampled_from((0, 1000))))
    for event in draw(st.lists(_EVENTS, max_size=25)):
        producer_id = draw(st.sampled_from(PRODUCERS))
        if event in ("commit", "abort"):
            log.end_transaction(producer_id, commit=event == "commit")
        elif event == "roll":
            log.roll()
        elif event == "gap":
            log.skip(draw(st.integers(1, 5)))
        else:
            records = draw(_RECORDS)
            is_compacted = draw(st.integers(0, 3)) == 0
            log.append(
                records,
                codec=draw(st.integers(0, 4)),
                producer_id=producer_id if event == "transactional" else -1,
                transactional=event == "transactional",
                kept=draw(st.sets(st.integers(0, len(records) - 1))) if is_compacted else None,
                append_time=draw(st.booleans()) and not is_compacted,
            )
    return log
