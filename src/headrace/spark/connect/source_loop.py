"""A source: plan, job, decision, and again. Its position is in the decision of each batch."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from headrace.connect.api import Connector, GiveUp, Source, Step
from headrace.connect.config import Config
from headrace.connect.position import Position, position_of
from headrace.spark.connect.frames import frame_of
from headrace.spark.connect.looping import ConnectorLoop
from headrace.spark.connect.naming import sink_id
from headrace.spark.sink.job import Jobs, Settled

_POLL: Final = "poll.interval.ms"


class SourceLoop(ConnectorLoop):
    def work(self, connector: Connector) -> None:
        assert isinstance(connector, Source)
        config = connector.config
        with Jobs(self.context.sink_options(sink_id(self.name))) as jobs:
            position = _begin(jobs)
            if position:
                connector.committed(position)
            while True:
                self.check()
                step = connector.plan(position)
                if step is None or (step.is_empty and step.position == position):
                    self.alive()
                    self.wait(config[_POLL] / 1000)
                    continue
                topics = frozenset(connector.topics())
                self.begun(topics)
                self._take(jobs, type(connector), config, step)
                position = step.position
                self.alive(topics)
                connector.committed(position)
                if not step.more:
                    self.wait(config[_POLL] / 1000)

    def _take(self, jobs: Jobs, connector: type[Source], config: Config, step: Step) -> None:
        # A name that no job ever had: one that had it would be taken for this one, and nothing be written.
        note, job_id = step.position.text(), uuid4().hex
        if step.is_empty:
            jobs.run(None, job_id, note)
        else:
            self.job(lambda: jobs.run(frame_of(self.context.spark, connector, config, step), job_id, note))


def _begin(jobs: Jobs) -> Position:
    """Where to go on. Whoever ran before is shut out from here."""
    settled = jobs.settle()
    last = settled.last
    if not settled.lost_rows or last is None:
        return position_of(settled.note)
    _check_all_lost(settled)
    # Nothing of the batch is there, so it never was: what comes next begins where it began.
    before = position_of(last.before)
    jobs.put_note(f"{last.job}-lost", before.text())
    return before


def _check_all_lost(settled: Settled) -> None:
    assert settled.last is not None
    if settled.lost_rows < settled.last.rows:
        raise GiveUp(
            f"{settled.lost_rows} of {settled.last.rows} rows of the last batch timed out after they were "
            "decided, and the others are there. Compare the topics with the source, then set the position "
            "with PATCH /connectors/NAME/offsets"
        )
