"""Offsets of a source and of a sink, in each state: read, altered, reset."""

from __future__ import annotations

from tests.oracle.connect.dialogue import Dialogue

SOURCE, SINK = "/connectors/from/offsets", "/connectors/to/offsets"


def run(with_worker: Dialogue) -> None:
    ask = with_worker.ask
    file = with_worker.file("from.txt", "first", "second")
    out = with_worker.file("to.txt")
    ask(
        "create a source", "POST", "/connectors", {"name": "from", "config": with_worker.source("line", file)}
    )
    ask("create a sink", "POST", "/connectors", {"name": "to", "config": with_worker.sink("line", out)})
    with_worker.until_state("source runs", "from", "RUNNING", "RUNNING")
    with_worker.until_state("sink runs", "to", "RUNNING", "RUNNING")
    _source(with_worker, file)
    _sink(with_worker)


def _source(with_worker: Dialogue, file: str) -> None:
    ask, until = with_worker.ask, with_worker.until_state
    with_worker.until(
        "source: offsets", "GET", SOURCE, lambda a: a.body["offsets"][0]["offset"]["position"] == 13
    )
    altered = {"offsets": [{"partition": {"filename": file}, "offset": {"position": 6}}]}
    ask("source: alter while it runs", "PATCH", SOURCE, altered)
    ask("source: reset while it runs", "DELETE", SOURCE)
    ask("source: pause", "PUT", "/connectors/from/pause")
    until("source: is paused", "from", "PAUSED", "PAUSED")
    ask("source: alter while it is paused", "PATCH", SOURCE, altered)
    ask("source: stop", "PUT", "/connectors/from/stop")
    until("source: is stopped", "from", "STOPPED")
    ask("source: offsets while it is stopped", "GET", SOURCE)
    ask("source: alter", "PATCH", SOURCE, altered)
    ask("source: altered", "GET", SOURCE)
    ask("source: alter nothing", "PATCH", SOURCE, {"offsets": []})
    ask("source: alter: no offsets", "PATCH", SOURCE, {})
    ask("source: alter: not JSON", "PATCH", SOURCE, "{")
    ask("source: alter: no partition", "PATCH", SOURCE, {"offsets": [{"offset": {"position": 6}}]})
    wrong = {"offsets": [{"partition": {"file": "x"}, "offset": {"position": 6}}]}
    ask("source: alter: another partition", "PATCH", SOURCE, wrong)
    negative = {"offsets": [{"partition": {"filename": file}, "offset": {"position": -1}}]}
    ask("source: alter: a negative offset", "PATCH", SOURCE, negative)
    text = {"offsets": [{"partition": {"filename": file}, "offset": {"position": "six"}}]}
    ask("source: alter: no number", "PATCH", SOURCE, text)
    one = {"offsets": [{"partition": {"filename": file}, "offset": None}]}
    ask("source: alter to null", "PATCH", SOURCE, one)
    ask("source: altered to null", "GET", SOURCE)
    ask("source: alter once more", "PATCH", SOURCE, altered)
    ask("source: reset", "DELETE", SOURCE)
    ask("source: after the reset", "GET", SOURCE)
    ask("source: resume", "PUT", "/connectors/from/resume")
    until("source: runs again", "from", "RUNNING", "RUNNING")
    with_worker.until(
        "source: reads again", "GET", SOURCE, lambda a: a.body["offsets"][0]["offset"]["position"] == 13
    )


def _sink(with_worker: Dialogue) -> None:
    ask, until = with_worker.ask, with_worker.until_state
    with_worker.until(
        "sink: offsets", "GET", SINK, lambda a: a.body["offsets"][0]["offset"]["kafka_offset"] >= 5
    )
    altered = {
        "offsets": [
            {"partition": {"kafka_topic": "line", "kafka_partition": 0}, "offset": {"kafka_offset": 1}}
        ]
    }
    ask("sink: alter while it runs", "PATCH", SINK, altered)
    ask("sink: stop", "PUT", "/connectors/to/stop")
    until("sink: is stopped", "to", "STOPPED")
    ask("sink: offsets while it is stopped", "GET", SINK)
    with_worker.until("sink: alter", "PATCH", SINK, lambda a: a.status != 500, altered)
    ask("sink: altered", "GET", SINK)
    wrong = {"offsets": [{"partition": {"topic": "line"}, "offset": {"kafka_offset": 1}}]}
    ask("sink: alter: another partition", "PATCH", SINK, wrong)
    text = {
        "offsets": [
            {"partition": {"kafka_topic": "line", "kafka_partition": 0}, "offset": {"kafka_offset": "x"}}
        ]
    }
    ask("sink: alter: no number", "PATCH", SINK, text)
    null = {"offsets": [{"partition": {"kafka_topic": "line", "kafka_partition": 0}, "offset": None}]}
    ask("sink: alter to null", "PATCH", SINK, null)
    ask("sink: altered to null", "GET", SINK)
    ask("sink: alter once more", "PATCH", SINK, altered)
    ask("sink: reset", "DELETE", SINK)
    ask("sink: after the reset", "GET", SINK)
    ask("delete the sink", "DELETE", "/connectors/to")
    ask("delete the source", "DELETE", "/connectors/from")
