"""Options are checked before anything is written, and each error says what to do."""

from __future__ import annotations

import json
import pickle
import re

import pytest
from pyspark.sql.types import StructType

from headrace.protocol.compression import Compression
from headrace.spark.sink.decision import SinkFailure
from headrace.spark.sink.naming import decider_id, pattern_of_tasks, sink_id_from, task_id
from headrace.spark.sink.options import DEFAULT_DECISIONS, parse_options
from headrace.spark.sink.schema import check_schema

_BASE = {"kafka.bootstrap.servers": "localhost:9092", "topic": "t", "sink.id": "s"}


def test_defaults() -> None:
    options = parse_options(_BASE, streaming=True)
    assert (options.bootstrap, options.topic, options.sink) == ("localhost:9092", "t", "s")
    assert options.decisions == DEFAULT_DECISIONS
    assert options.compression is Compression.NONE
    assert options.checksum is None


def test_names_are_compared_without_case_and_kafkas_own_are_understood() -> None:
    given = {
        **_BASE,
        "Kafka.Compression.Type": "zstd",
        "KAFKA.request.timeout.ms": "5000",
        "kafka.acks": "all",
    }
    options = parse_options(given, streaming=True)
    assert (options.compression, options.request_timeout) == (Compression.ZSTD, 5.0)


def test_a_stream_without_a_name_is_named_after_its_checkpoint() -> None:
    given = {"kafka.bootstrap.servers": "x:1", "topic": "t", "checkpointLocation": "/data/c/"}
    options = parse_options(given, streaming=True)
    assert options.sink == sink_id_from("/data/c") != sink_id_from("/data/d")


def test_a_job_needs_no_name() -> None:
    assert parse_options({"kafka.bootstrap.servers": "x:1", "topic": "t"}, streaming=False).sink is None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers"),
        ({"sink.id": "a b"}, "letters, digits"),
        ({"tpoic": "t"}, "no option 'tpoic'"),
        ({"kafka.transactional.id": "x"}, "leave kafka.transactional.id out"),
        ({"kafka.security.protocol": "TLS"}, "use one of PLAINTEXT"),
        ({"kafka.security.protocol": "SASL_SSL"}, "needs sasl.mechanism"),
        ({"kafka.ssl.trust.location": "/ca.pem"}, "does not know kafka.ssl.trust.location"),
        ({"kafka.sasl.username": "u"}, "set sasl.jaas.config"),
        ({"kafka.sasl.jaas.config": "canary"}, "after the class comes required"),
        ({"batch.bytes": "many"}, "a number"),
        ({"batch.bytes": "1"}, "between"),
        ({"compression": "brotli"}, "one of: none, gzip"),
        ({"checksum": "yes"}, "auto, always or never"),
    ],
)
def test_a_mistake_is_named(change: dict[str, str], text: str) -> None:
    with pytest.raises(SinkFailure, match=re.escape(text)):
        parse_options({**_BASE, **change}, streaming=True)


def test_a_stream_with_neither_name_nor_checkpoint_is_refused() -> None:
    with pytest.raises(SinkFailure, match=r"sink\.id"):
        parse_options({"kafka.bootstrap.servers": "x:1", "topic": "t"}, streaming=True)


def test_a_job_id_without_a_sink_is_refused() -> None:
    with pytest.raises(SinkFailure, match=r"give a sink\.id too"):
        parse_options({"kafka.bootstrap.servers": "x:1", "topic": "t", "job.id": "1"}, streaming=False)


def _schema(text: str) -> StructType:
    fields = []
    for part in text.split(", "):
        name, kind = part.split(" ", 1)
        inner = (
            '{"type":"array","elementType":{"type":"struct","fields":[{"name":"key","type":"string",'
            '"nullable":true,"metadata":{}},{"name":"value","type":"binary","nullable":true,"metadata":{}}]},'
            '"containsNull":true}'
            if kind == "headers"
            else f'"{kind}"'
        )
        fields.append(f'{{"name":"{name}","type":{inner},"nullable":true,"metadata":{{}}}}')
    return StructType.fromJson(json.loads(f'{{"type":"struct","fields":[{",".join(fields)}]}}'))


@pytest.mark.parametrize(
    "text",
    [
        "value string",
        "value binary, key string",
        "key binary, value binary, partition integer, timestamp timestamp, headers headers",
    ],
)
def test_columns_of_sparks_own_sink_are_taken(text: str) -> None:
    check_schema(_schema(text), "t")


@pytest.mark.parametrize(
    ("text", "topic", "said"),
    [
        ("key string", "t", 'no column "value"'),
        ("value string", None, "say where the rows go"),
        ("value long", "t", "cast it first"),
        ("value string, id long", "t", "no place for column 'id'"),
        ("value string, headers string", "t", "headers"),
    ],
)
def test_columns_that_have_no_place_are_named(text: str, topic: str | None, said: str) -> None:
    with pytest.raises(SinkFailure, match=re.escape(said)):
        check_schema(_schema(text), topic)


def test_a_pattern_finds_all_tasks_of_its_sink_and_no_other() -> None:
    mine = re.compile(pattern_of_tasks("a.b-c"))
    assert mine.fullmatch(task_id("a.b-c", "run", 1, 20, 3))
    assert not mine.fullmatch(decider_id("a.b-c"))
    assert not mine.fullmatch(task_id("a.b-c2", "run", 1, 20, 3))
    assert not mine.fullmatch(task_id("axb-c", "run", 1, 20, 3))
    one_run = re.compile(pattern_of_tasks("a.b-c", "run"))
    assert one_run.fullmatch(task_id("a.b-c", "run", 0, 0, 0))
    assert not one_run.fullmatch(task_id("a.b-c", "run2", 0, 0, 0))


_JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="canary";'


def test_a_plan_takes_the_password_to_the_tasks_and_does_not_show_it() -> None:
    given = {
        **_BASE,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": _JAAS,
    }
    options = parse_options(given, streaming=True)
    assert "canary" not in repr(options)
    there = pickle.loads(pickle.dumps(options))
    credentials = there.protection.security().credentials
    assert credentials is not None
    assert credentials.password.reveal() == "canary"


def test_what_is_wrong_with_a_password_is_said_without_it() -> None:
    given = {**_BASE, "kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN"}
    with pytest.raises(SinkFailure) as refused:
        parse_options({**given, "kafka.sasl.jaas.config": _JAAS.replace(";", "")}, streaming=True)
    assert "semicolon" in str(refused.value)
    assert "canary" not in str(refused.value)
