"""Typed columns for a frame as the Kafka connector gives it."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructType

from headrace.spark.decoding import avro_schema, json_schema, wire_format
from headrace.spark.decoding.avro_records import Writers, decode_avro
from headrace.spark.decoding.columns import DECODED, PROBLEM
from headrace.spark.decoding.formats import Decoding, DecodingRefused, Format
from headrace.spark.decoding.json_records import decode_json, is_text, required
from headrace.spark.decoding.registered import registered


def decode(frame: DataFrame, decoding: Decoding, column: str = "value") -> DataFrame:
    """The frame with two columns more: `decoded` (a struct or null) and `problem` (the reason or null).

    No record stops a query: what cannot be decoded has a problem and no `decoded`. A null value has neither.
    With a registry, this asks it, so call it anew for each batch. Raises DecodingRefused for a description
    that cannot be carried out, RegistryUnreachable where the registry does not answer.
    """
    value = sf.col(column)
    try:
        match decoding.format:
            case Format.BYTES:
                return _kept(frame, value)
            case Format.JSON:
                return _decoded_json(frame, decoding, value)
            case Format.AVRO:
                return _decoded_avro(frame, decoding, value)
            case Format.PROTOBUF:
                return _decoded_protobuf(frame, decoding, value)
    except (PySparkException, Py4JJavaError) as error:
        raise DecodingRefused(f"Spark cannot decode {decoding.format} by this schema: {error}") from None


def _kept(frame: DataFrame, value: Column) -> DataFrame:
    kept = sf.when(value.isNotNull(), sf.struct(value.alias("value")))
    return frame.withColumns({DECODED: kept, PROBLEM: sf.lit(None).cast(StringType())})


def _decoded_json(frame: DataFrame, decoding: Decoding, value: Column) -> DataFrame:
    if decoding.registry is None:
        schema = _json_columns(decoding)
        text, problem, needed = value, None, list(required(schema))
    else:
        # JSON tells its own fields, so the reader's schema suffices, and the id is passed over. But a record
        # must not lack what its writer's schema did not ask for.
        found = registered(decoding)
        schema = json_schema.columns(found.reader.text, found.reader.references)
        others = [json_schema.columns(each.text, each.references) for each in found.writers.values()]
        needed = [path for path in required(schema) if all(path in required(other) for other in others)]
        text, problem = wire_format.record(value), wire_format.problem(value)
    text = text.cast(StringType())
    not_text = sf.when(~is_text(text), "not JSON: the bytes are not UTF-8")
    early = not_text if problem is None else sf.coalesce(problem, not_text)
    return decode_json(frame, schema, value, text, early, needed)


def _json_columns(decoding: Decoding) -> StructType:
    schema = decoding.schema
    if isinstance(schema, StructType):
        return schema
    said, parsed = "", None
    if isinstance(schema, str):
        if schema.lstrip().startswith("{"):
            return json_schema.columns(schema)
        try:
            parsed = StructType.fromDDL(schema)
        except ParseException as error:
            said = f". Spark says: {str(error).strip().splitlines()[0]}"  # which names the word
    if not isinstance(parsed, StructType):
        raise DecodingRefused(
            "the schema of JSON is a StructType, its DDL, such as 'id bigint, name string', "
            f"or a JSON Schema document, not {schema!r}{said}"
        )
    return parsed


def _decoded_avro(frame: DataFrame, decoding: Decoding, value: Column) -> DataFrame:
    if decoding.registry is None:
        assert isinstance(decoding.schema, str | bytes), "checked when the description was made"
        return decode_avro(frame, avro_schema.parse(decoding.schema), value)
    found = registered(decoding)
    schemas = {
        number: avro_schema.with_references(avro_schema.parse(each.text), each.references)
        for number, each in found.writers.items()
    }
    reader = avro_schema.document_for_all(schemas[found.reader.id], schemas.values())
    return decode_avro(frame, reader, value, Writers(decoding.registry, _subjects(decoding), schemas))


def _decoded_protobuf(frame: DataFrame, decoding: Decoding, value: Column) -> DataFrame:
    # Only here, so that who has no Protobuf needs no library for it.
    from headrace.spark.decoding import protobuf_records, protobuf_schema

    if decoding.registry is None:
        assert isinstance(decoding.schema, str | bytes), "checked when the description was made"
        reader = protobuf_schema.given(decoding.schema, decoding.message)
        return protobuf_records.decode_protobuf(frame, reader, value)
    found = registered(decoding)
    file = protobuf_schema.linked(found.reader.text, found.reader.references)
    reader = protobuf_schema.first_message(file, decoding.message)
    messages = {number: protobuf_records.messages_of(each) for number, each in found.writers.items()}
    writers = protobuf_records.Writers(decoding.registry, _subjects(decoding), messages)
    return protobuf_records.decode_protobuf(frame, reader, value, writers)


def _subjects(decoding: Decoding) -> str:
    """For people."""
    return ", ".join((decoding.subject or "", *decoding.other_subjects))
