"""Whether a reader's schema takes a writer's numbers for what they are. Pure.

Avro resolves the type below a logical type and leaves the rest to whoever reads. Spark's reader takes scale
and unit from the reader's schema alone: 12.34 that was written with two digits after the point is 0.1234 for
a schema with four, and milliseconds that are read as microseconds are days in January 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headrace.spark.decoding.avro_schema import PARTS, same_field, without_names

#: Types that tell how a number is to be taken. A local time has the number of the same time in UTC.
_TELLING: Final = frozenset(
    {"decimal", "date", "time-millis", "time-micros"}
    | {f"{local}timestamp-{unit}" for local in ("", "local-") for unit in ("millis", "micros", "nanos")}
)


def means_the_same(reader: Any, writer: Any) -> bool:
    """Where only one of the two has a logical type, nothing contradicts it."""
    return _Comparison().same(without_names(reader), without_names(writer))


class _Comparison:
    def __init__(self) -> None:
        #: Pairs that are being compared: types may contain themselves.
        self._begun: set[tuple[int, int]] = set()

    def same(self, reader: Any, writer: Any) -> bool:
        if isinstance(writer, list):
            return all(self.same(reader, each) for each in writer)
        if isinstance(reader, list):
            chosen = _chosen(reader, writer)
            return chosen is None or self.same(chosen, writer)
        pair = (id(reader), id(writer))
        if pair in self._begun:
            return True
        self._begun.add(pair)
        if "fields" in reader and "fields" in writer:
            theirs = ((field, same_field(writer, field)) for field in reader["fields"])
            return all(self.same(ours["type"], each["type"]) for ours, each in theirs if each is not None)
        kind = reader["type"]
        if kind in PARTS and writer["type"] == kind:
            return self.same(reader[PARTS[kind]], writer[PARTS[kind]])
        ours, theirs_ = _meaning(reader), _meaning(writer)
        return ours is None or theirs_ is None or ours == theirs_


def _chosen(union: list[Any], writer: Mapping[str, Any]) -> Any:
    """The branch that Avro takes for what was written: the same type, else one that it can become."""
    same = [each for each in union if each["type"] == writer["type"]]
    named = [each for each in same if each.get("name") == writer.get("name")]
    longer = [each for each in union if (writer["type"], each["type"]) == ("int", "long")]
    return next(iter((*named, *same, *longer)), None)


def _meaning(schema: Mapping[str, Any]) -> tuple[str, int] | None:
    logical = schema.get("logicalType")
    if logical not in _TELLING:
        return None
    return str(logical).removeprefix("local-"), int(schema.get("scale") or 0) if logical == "decimal" else 0
