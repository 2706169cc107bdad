"""Whether a topic is still the one that a table is made from.

Offsets do not tell: a topic that was deleted and made anew may have grown past them. Its id tells. There is
no going on with another topic: its records have smaller offsets than the rows of the old one, and would lose
to them. So the table asks for a rebuild, whatever `on_data_loss` says.
"""

from __future__ import annotations

from headrace.spark.table.config import TableSpec
from headrace.spark.table.plan import NeedsRebuild


def is_another(known: str | None, found: str | None) -> bool:
    """Only where both are known: one that is not there just now, or of which nobody noted the id, is not."""
    return known is not None and found is not None and known != found


def check_topic(spec: TableSpec, known: str | None, found: str | None) -> None:
    if is_another(known, found):
        raise NeedsRebuild(
            f"topic {spec.topic} was deleted and made anew: {spec.name} has rows of the old one, and its "
            f"offsets mean nothing in the new one. Run `headrace table rebuild {spec.name}`"
        )
