"""Which clicks are one visit. No Spark in here: these rules can be tested by calling them."""

from __future__ import annotations

from typing import NamedTuple


class Visit(NamedTuple):
    """Times in milliseconds; a tuple, as Spark's state wants it."""

    begin_ms: int
    end_ms: int
    clicks: int
    cents: int


def add(visits: list[Visit], click: Visit, gap_ms: int) -> list[Visit]:
    """The visits of somebody after one more click, which may come late: then it may join two visits."""
    apart, joined = [], click
    for visit in visits:
        if visit.end_ms + gap_ms > click.begin_ms and click.end_ms + gap_ms > visit.begin_ms:
            joined = Visit(
                min(visit.begin_ms, joined.begin_ms),
                max(visit.end_ms, joined.end_ms),
                visit.clicks + joined.clicks,
                visit.cents + joined.cents,
            )
        else:
            apart.append(visit)
    return [*apart, joined]
