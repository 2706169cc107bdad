"""What a connector said in a task, out of Spark's failure."""

from __future__ import annotations

from headrace.connect.api import ConnectorFailure, GiveUp
from headrace.spark.connect.task_failures import of_connector

_SPARK = """Job aborted: Task 0 in stage 3.0 failed 1 times: org.apache.spark.api.python.PythonException:
Traceback (most recent call last):
  File "reading.py", line 3, in rows
    raise GiveUp("no")
headrace.connect.api.{}: /in/a.json has at byte 9 a line that is no JSON

\tat org.apache.spark.api.python.BasePythonRunner
"""


def test_what_a_connector_said_stays_what_it_was() -> None:
    for kind in (ConnectorFailure, GiveUp):
        found = of_connector(RuntimeError(_SPARK.format(kind.__name__)))
        assert type(found) is kind
        assert str(found) == "/in/a.json has at byte 9 a line that is no JSON"


def test_what_is_not_a_connector_s_stays_as_it_is() -> None:
    assert of_connector(RuntimeError("Job aborted")) is None
    assert of_connector(RuntimeError(_SPARK.format("Another"))) is None
    assert of_connector(GiveUp("headrace.connect.api.GiveUp: x")) is None
