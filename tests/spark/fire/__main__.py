"""Many rounds, each with a seed of its own.

    python -m tests.spark.fire --job spark-sink --rounds 50

A round that fails says its seed; `--seed N --rounds 1` plays the same strikes again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from headrace.spark import session
from tests.apache_kafka import CACHE
from tests.spark import shared_classes
from tests.spark.fire.field import BROKERS, Field
from tests.spark.fire.jobs import JOBS
from tests.spark.fire.rounds import Outcome, Round
from tests.spark.fire.strikes import planned


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.fire", description=__doc__)
    parser.add_argument("--job", action="append", choices=list(JOBS), help="may be repeated; default: all")
    parser.add_argument("--rounds", type=int, default=1, help="for each job")
    parser.add_argument("--seed", type=int, default=1, help="of the first round; each next one has the next")
    parser.add_argument("--strikes", type=int, default=6, help="kills in a round")
    parser.add_argument("--brokers", choices=list(BROKERS), default="headrace", help="whose they are")
    parser.add_argument("--output", type=Path, help="a file to which each outcome is appended as JSON")
    given = parser.parse_args(arguments)
    jobs = [JOBS[name] for name in given.job or JOBS]
    wrong = 0
    shared_classes.make()
    with tempfile.TemporaryDirectory(prefix="headrace-fire-") as name:
        directory = Path(name)
        judging = session(
            "judge",
            master="local[1]",
            jar_directory=CACHE / "spark-jars",
            warehouse=directory / "judge",
            extra={
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.extraJavaOptions": shared_classes.short_lived(),
                "spark.sql.shuffle.partitions": "2",
                "spark.databricks.delta.snapshotPartitions": "2",
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
            },
        )
        judging.sparkContext.setLogLevel("ERROR")
        try:
            is_tiered = any(job.is_tiered for job in jobs)
            with Field(directory / "field", brokers=given.brokers, is_tiered=is_tiered) as field:
                for seed in range(given.seed, given.seed + given.rounds):
                    for job in jobs:
                        field.calm()
                        place = directory / f"{job.name}-{seed}"
                        outcome = Round(field, job, seed, place, _say).run(
                            judging, planned(seed, given.strikes, store=job.is_tiered)
                        )
                        wrong += not _note(outcome, job.exactly_once, given.output)
        finally:
            judging.stop()
    _say(f"{given.rounds * len(jobs)} rounds, {wrong} wrong")
    return 1 if wrong else 0


def _note(outcome: Outcome, exactly_once: bool, output: Path | None) -> bool:
    verdict = outcome.verdict
    right = verdict.equal if exactly_once else not (verdict.missing or verdict.alien)
    _say(f"{'right' if right else 'WRONG'}: {outcome}")
    if output is not None:
        document = {**outcome._asdict(), "verdict": verdict._asdict(), "right": right}
        with output.open("a") as file:
            file.write(json.dumps(document) + "\n")
    return right


def _say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


if __name__ == "__main__":
    sys.exit(main())
