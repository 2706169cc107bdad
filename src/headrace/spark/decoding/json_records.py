"""JSON by Spark's own parser, once for each record; a second look is taken only at records that it refused.

`from_json` puts the text of a record that does not fit into a field of its own and keeps what did fit. So a
refusal costs nothing to see, and the reason is found by comparing what the text has with what was kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from headrace.spark.decoding.columns import KEPT, PARSED, with_columns

_REFUSED: Final = "__refused"
_OPTIONS: Final = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _REFUSED,
    # Spark takes 'single quotes' by default; no other reader of JSON does.
    "allowSingleQuotes": "false",
    # NaN is no JSON, and "NaN" is a string: neither is a number.
    "allowNonNumericNumbers": "false",
    # Spark would go on to take "365" for a date, as the number of days since 1970.
    "enableDateTimeParsingFallback": "false",
}
_TEXTS: Final = "map<string,string>"


def decode_json(
    frame: DataFrame,
    schema: StructType,
    value: Column,
    text: Column,
    early_problem: Column,
    required_fields: Iterable[tuple[str, ...]],
) -> DataFrame:
    """`text` is what is to be parsed of `value`. `early_problem` is what is wrong before it is looked at,
    else null; such a text is not parsed.
    """
    with_refusal = StructType([*schema.fields, StructField(_REFUSED, StringType())])
    # Spark compiles this condition. As a part of what the parser gets, it would be interpreted each time.
    parsed = sf.when(early_problem.isNull(), sf.from_json(text, with_refusal, _OPTIONS))
    answer = sf.col(PARSED)
    good = answer.isNotNull() & answer[_REFUSED].isNull()
    reasons = [
        early_problem,
        sf.when(answer.isNull(), "empty: there is no JSON in it"),
        sf.when(answer[_REFUSED].isNotNull(), _why_refused(answer[_REFUSED], schema)),
    ]
    for path in required_fields:
        good = good & ~_absent(answer, path)
        reasons.append(sf.when(_absent(answer, path), f"required field {'.'.join(path)} is missing or null"))
    return with_columns(
        frame,
        value=value,
        parsed=parsed,
        good=good,
        decoded=sf.col(KEPT).dropFields(_REFUSED),
        reason=sf.coalesce(*reasons, sf.lit("does not fit the schema")),
    )


def is_text(text: Column) -> Column:
    """Whether bytes that were cast to a string are UTF-8.

    Spark's own check goes byte by byte. Java's decoder does not, and puts U+FFFD where it finds something
    else: what it leaves in one piece is UTF-8. Only a text in which that letter stands is looked at again,
    since somebody may have written it.
    """
    in_one_piece = sf.size(sf.split(text, "\ufffd", 2)) == 1
    return in_one_piece | sf.is_valid_utf8(text)


def required(schema: StructType, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Fields that are not nullable. Those within a struct are required where the struct is there."""
    for field in schema.fields:
        if not field.nullable:
            yield (*above, field.name)
        if isinstance(field.dataType, StructType):
            yield from required(field.dataType, (*above, field.name))


def _absent(answer: Column, path: tuple[str, ...]) -> Column:
    for name in path[:-1]:
        answer = answer[name]
    return answer.isNotNull() & answer[path[-1]].isNull()


def _why_refused(text: Column, schema: StructType) -> Column:
    document = sf.try_parse_json(text)
    kind = sf.schema_of_variant(document)
    return sf.coalesce(
        sf.when(document.isNull(), sf.concat(sf.lit("not JSON: "), _beginning(text))),
        sf.when(~kind.startswith("OBJECT"), sf.concat(sf.lit("not a JSON object: "), _beginning(text))),
        *(_wrong_type(text, sf.col(PARSED), path, struct) for path, struct in _structs(schema)),
        sf.concat(sf.lit("does not fit the schema: "), _beginning(text)),
    )


def _structs(schema: StructType, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], StructType]]:
    yield above, schema
    for field in schema.fields:
        if isinstance(field.dataType, StructType):
            yield from _structs(field.dataType, (*above, field.name))


def _wrong_type(text: Column, answer: Column, path: tuple[str, ...], struct: StructType) -> Column:
    """The first field of this struct that the text has and the parser did not keep.

    One expression for each struct, whatever the number of its fields, so that wide schemas stay compilable.
    """
    for name in path:
        answer = answer[name]
    here = sf.get_json_object(text, "$" + "".join(f"['{name}']" for name in path)) if path else text
    present = sf.map_filter(sf.from_json(here, _TEXTS), lambda _, value: value.isNotNull())
    kept = sf.json_object_keys(sf.to_json(answer))
    known = sf.array(*(sf.lit(name) for name in struct.names))
    lost = sf.array_intersect(known, sf.array_except(sf.map_keys(present), kept))
    types = sf.create_map(
        *(sf.lit(each) for field in struct.fields for each in (field.name, field.dataType.simpleString()))
    )
    first = lost[0]
    full_name = sf.concat(sf.lit("".join(f"{each}." for each in path)), first)
    return sf.when(
        answer.isNotNull() & (sf.size(lost) > 0),
        sf.concat(
            sf.lit("wrong type for field "), full_name, sf.lit(": "), _beginning(present[first]),
            sf.lit(" is not "), types[first],
        ),
    )  # fmt: skip


def _beginning(text: Column) -> Column:
    """Enough to recognise it by. A reason is no place for a whole record."""
    return sf.when(sf.length(text) > 60, sf.concat(sf.left(text, sf.lit(57)), sf.lit("..."))).otherwise(text)
