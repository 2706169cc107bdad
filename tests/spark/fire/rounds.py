"""One round: a job runs, is hit as the seed says, is started again, comes to its end, and is judged."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import SparkSession

from tests.spark import processes
from tests.spark.driver_process import DriverProcess
from tests.spark.fire import batches
from tests.spark.fire.feeding import Feeder
from tests.spark.fire.field import Field
from tests.spark.fire.job import Job
from tests.spark.fire.judges import Verdict
from tests.spark.fire.orders import Orders
from tests.spark.fire.strikes import Moment, Strike, Target
from tests.spark.fire.watching import PARTITIONS, watching

#: From a start to the next batch: a JVM, executors, and a broker that may be away. On a busy machine.
_PATIENCE: Final = 600.0
_LOOK_SECONDS: Final = 0.1
#: How many batches may end before they are seen to write; then the moment after the last is as good as any.
_WRITES: Final = 3
#: A driver may give up by itself when brokers die; somebody starts it again. Not for ever.
_FALLS: Final = 5

Say = Callable[[str], None]


class Outcome(NamedTuple):
    job: str
    seed: int
    verdict: Verdict
    strikes: int
    in_flight: int
    """Strikes that found a batch in flight."""
    falls: int
    """How often the driver ended by itself before its time."""
    batches: int
    seconds: float


class Round:
    def __init__(
        self, field: Field, job: Job, seed: int, directory: Path, say: Say = lambda text: None
    ) -> None:
        self.field = field
        self.job = job
        self.seed = seed
        self.directory = directory
        self._say = say
        self._starts = 0
        self._falls = 0
        self._in_flight = 0
        self._orphans: set[int] = set()
        """Executors of a driver that is dead. They end by themselves, and are not worth a strike."""
        directory.mkdir(parents=True)
        name = f"{job.name}-{seed}-{time.time_ns() % 1_000_000}"
        source = field.create_topic(f"{name}-in", PARTITIONS, job.source_settings)
        target = field.create_topic(f"{name}-out", PARTITIONS) if job.writes_topic else name.replace("-", "_")
        self.orders = Orders(
            field.spark.url,
            {},
            field.bootstrap,
            str(directory),
            source,
            target,
            job.batch_records,
            job.options,
        )
        self._feeder = Feeder(field.bootstrap, source, PARTITIONS, job.producer_batch_bytes)
        self._driver: DriverProcess | None = None

    def run(self, spark: SparkSession, strikes: Sequence[Strike]) -> Outcome:
        began = time.monotonic()
        try:
            self._feeder.feed(2 * self.job.batch_records)
            if self.job.prepare is not None:
                self.job.prepare(self.orders, self._feeder.feed, self.field)
            self._start()
            for strike in strikes:
                self._feeder.feed(self.job.batch_records)
                self._hit(strike)
            self._finish()
        except BaseException as error:
            error.add_note(f"job {self.job.name}, seed {self.seed}: {self._tail()}")
            raise
        finally:
            self._kill_driver()
        verdict = self.job.judge(spark, self.orders)
        seen = batches.look(self.directory)
        return Outcome(
            self.job.name,
            self.seed,
            verdict,
            len(strikes),
            self._in_flight,
            self._falls,
            seen.planned,
            time.monotonic() - began,
        )

    def _start(self, *, finish: bool = False) -> None:
        settings = {
            **self.field.spark.session_settings(),
            **self.job.settings_of_start(self._starts),
        }
        orders = dataclasses.replace(self.orders, settings=settings, finish=finish)
        self._starts += 1
        self._driver = DriverProcess(self.job.program, orders.to_json(), self.directory / "driver.out")

    def _kill_driver(self) -> None:
        if self._driver is not None:
            self._orphans = set(self.field.spark.executors())
            self._driver.kill()
            self._driver = None

    def _hit(self, strike: Strike) -> None:
        self._await(strike)
        seen = batches.look(self.directory)
        time.sleep(strike.delay * min(seen.seconds, 10))
        seen = batches.look(self.directory)
        self._in_flight += seen.in_flight
        where = "inside a batch" if seen.in_flight else "between batches"
        self._say(
            f"{self.job.name} seed {self.seed}: {strike.target} {strike.moment}, "
            f"{where} ({seen.over} of {seen.planned} over)"
        )
        match strike.target:
            case Target.DRIVER:
                self._kill_driver()
                self._start()
            case Target.EXECUTOR:
                self.field.kill_executor(strike.which)
            case Target.BROKER:
                self.field.kill_broker(strike.which, strike.down_seconds)
            case Target.STORE:
                self.field.kill_store(strike.down_seconds)

    def _await(self, strike: Strike) -> None:
        """The moment of the strike. A driver that fell meanwhile is started again."""
        deadline = time.monotonic() + _PATIENCE
        self._wait(
            lambda: bool(set(self.field.spark.executors()) - self._orphans),
            deadline,
            "executors run",
            look=0.5,
        )
        if strike.moment is Moment.IN_BATCH:
            self._await_batch(deadline)
            return
        with watching(self.job, self.orders) as written:
            for _ in range(_WRITES):
                # In this order: what is written from now on is of a batch that is not over.
                over = self._await_batch(deadline)
                before = written()
                self._wait(
                    lambda before=before, over=over: written() > before or self._over() > over,  # type: ignore[misc]  # the defaults bind the loop's values
                    deadline,
                    "the batch writes",
                )
                if self._over() == over:
                    return
                # It has ended meanwhile, and may have been the last one with records.
                self._feeder.feed(self.job.batch_records)

    def _await_batch(self, deadline: float) -> int:
        """How many are over when one is in flight."""
        seen: list[batches.Batches] = []

        def in_flight() -> bool:
            seen[:] = [batches.look(self.directory)]
            return seen[0].in_flight

        self._wait(in_flight, deadline, "a batch is in flight")
        return seen[0].over

    def _over(self) -> int:
        return batches.look(self.directory).over

    def _wait(
        self, condition: Callable[[], bool], deadline: float, what: str, look: float = _LOOK_SECONDS
    ) -> None:
        while not condition():
            assert time.monotonic() < deadline, f"not within {_PATIENCE:g} s: {what}"
            self._raise_up()
            time.sleep(look)

    def _raise_up(self) -> None:
        assert self._driver is not None
        if self._driver.status is not None:
            self._falls += 1
            assert self._falls <= _FALLS, f"the driver ended {self._falls} times by itself"
            self._say(f"{self.job.name} seed {self.seed}: the driver fell with {self._driver.status}")
            self._start()

    def _finish(self) -> None:
        """One more death, then a start that is to come to its end."""
        self._kill_driver()
        processes.wait_until(lambda: not self.field.spark.executors(), _PATIENCE, "orphaned executors end")
        for _ in range(_FALLS):
            self._start(finish=True)
            assert self._driver is not None
            if self._driver.wait(_PATIENCE) == 0:
                return
            self._falls += 1
        raise AssertionError("the job does not come to its end")

    def _tail(self) -> str:
        path = self.directory / "driver.out"
        return path.read_text(errors="replace")[-6000:] if path.exists() else ""
