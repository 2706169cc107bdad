"""What a query died of is said in words that help."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from headrace.spark.lake.config import parse
from headrace.spark.lake.failures import explain, short
from headrace.spark.lake.plan import route

_CONFIG = parse(
    '[kafka]\n"bootstrap.servers" = "a:1"\n[lake]\nlocation = "/d"\n[[topics]]\nname = "t"\n',
    Path("lake.toml"),
)
_RAISED = """[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function. Reason: An
exception was raised by the Python Proxy. Return Message:
Traceback (most recent call last):
  File "clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ^^^^
Traceback (most recent call last):
  File "loader.py", line 12, in load
    raise
headrace.spark.decoding.formats.DecodingRefused: the schema is not JSON

\tat org.apache.spark.Something.call(Something.scala:1)
"""


def test_our_own_reason_is_found_in_a_traceback() -> None:
    assert short(_RAISED) == "DecodingRefused: the schema is not JSON"
    only_one = (
        _RAISED.partition("Traceback")[0] + "Return Message: Traceback" + _RAISED.rpartition("Traceback")[2]
    )
    assert short(only_one) == "DecodingRefused: the schema is not JSON"


def test_calls_inside_spark_are_left_to_its_log() -> None:
    assert (
        short("Job aborted\n\tat org.apache.Foo\n\nCaused by: disk full\n\tat x")
        == "Job aborted Caused by: disk full"
    )
    assert len(short("x" * 5000)) < 700


def test_lost_records_come_with_a_choice() -> None:
    way = route(_CONFIG, "t")
    assert way is not None
    text = "Partition t-0's offset was changed from 3 to 1, some data may have been missed."
    assert 'on_data_loss = "continue"' in explain(text, way, _CONFIG)
    assert "continue" not in explain(text, way, replace(_CONFIG, on_data_loss="continue"))


def test_a_topic_is_called_deleted_only_where_kafka_says_so() -> None:
    way = route(_CONFIG, "t")
    assert way is not None
    gone = "UnknownTopicOrPartitionException: This server does not host this topic-partition: t-0"
    assert "was it deleted?" in explain(gone, way, _CONFIG)
    ours = _RAISED.replace("the schema is not JSON", "Subject 't-value' not found.")
    assert explain(ours, way, _CONFIG) == "DecodingRefused: Subject 't-value' not found."
    assert "deleted" not in explain("[PATH_NOT_FOUND] Path does not exist: /d/t", way, _CONFIG)
