"""Whether a topic is still the one that its table was loaded from.

Offsets do not tell: a topic that was deleted and made anew may have grown past them, and its first records
would be left out in silence. Its id tells. Going on is no choice, whatever `on_data_loss` says: a row is
known by topic, partition and offset, and the new topic has the same ones for other records.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.core.errors import HeadraceError
from headrace.spark.lake.files import Files, for_people
from headrace.spark.lake.plan import Route


class TopicMadeAnew(HeadraceError):
    """Says what to do to load the new one."""


def same_topic(files: Files, route: Route, found: Callable[[], str | None]) -> Callable[[], None]:
    """What raises if it is another topic by now. `found` tells the id, or None where the topic is not there
    or brokers have no ids: a topic that is not there just now is not another one.

    The first id that is told is noted, also by a state of before there were such notes.
    """
    note = _note(route)
    known = noted_id(files, route)

    def check() -> None:
        nonlocal known
        now = found()
        if now is None or now == known:
            return
        if known is not None:
            raise TopicMadeAnew(
                f"topic {route.topic} was deleted and made anew: its offsets begin again, and {route.table} "
                'has rows of the old one. To load the new one, give it other tables (table = "...", and '
                f"dead_letters where that is set) and remove {for_people(route.state)}"
            )
        files.create(note, now)
        known = now

    return check


def note_topic(files: Files, route: Route, topic_id: str | None) -> None:
    """The id that whoever loads past the brokers knows, if any. Raises if the table is another topic's."""
    same_topic(files, route, lambda: topic_id)()


def noted_id(files: Files, route: Route) -> str | None:
    """Of the topic that the table is loaded from; None where brokers have told none yet."""
    return files.read(_note(route))


def _note(route: Route) -> str:
    return f"{route.state}/topic_id"
