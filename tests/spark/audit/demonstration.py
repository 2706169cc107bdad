"""The chart in docs/pipeline/audit.md: a real run with faults put in, drawn by the command that users have.

python -m tests.spark.audit.demonstration docs/img/audit-report.svg
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path

from click.testing import CliRunner
from pyspark.sql import functions as F

from headrace.cli.main import cli
from tests.broker_process import HeadraceProcess
from tests.spark.audit.campaign import local_spark
from tests.spark.audit.pipeline import BEGIN_MS, WINDOW_MS, Pipeline, Sent, Teller

WINDOWS = 90
#: Where a record is lost on the way to the log, three are doubled in the lake, and one is altered there.
LOST, DOUBLED, ALTERED = 21, 52, 60
#: From here on a producer is silent.
SILENT = 82


def _records() -> list[Sent]:
    found = []
    for window in range(WINDOWS):
        count = round(150 + 60 * math.sin(window / 9) + 17 * math.sin(window * 2.3))
        for number in range(count):
            moment = BEGIN_MS + window * WINDOW_MS + number * WINDOW_MS // count
            value = b'{"order":%d}' % (window * 1_000 + number)
            found.append(Sent(number % 2, moment, b"customer-%d" % (number % 31), value))
    return found


def _window(record: Sent) -> int:
    return (record.timestamp_ms - BEGIN_MS) // WINDOW_MS


def run(directory: Path, chart: Path) -> str:
    with (
        HeadraceProcess(directory / "broker", {}) as broker,
        local_spark(directory / "warehouse", "1g") as spark,
    ):
        pipeline = Pipeline(spark, broker.bootstrap, directory, topic="orders", format="delta")
        records = _records()
        lost = next(record for record in records if _window(record) == LOST)
        web = [Teller("orders", "checkout", f"web-{number}") for number in (1, 2, 3)]
        for number, teller in enumerate(web):
            silent = number == 2
            own = [record for record in records[number::3] if not (silent and _window(record) >= SILENT)]
            teller.acknowledged(own)
            teller.tell(BEGIN_MS + (SILENT if silent else WINDOWS) * WINDOW_MS, closing=not silent)
            pipeline.tell(*teller.events)
        pipeline.store([record for record in records if record is not lost])
        rows = pipeline.records()
        window = F.floor((F.unix_millis("timestamp") - BEGIN_MS) / WINDOW_MS)
        doubled = rows.where(window == DOUBLED).orderBy("offset").limit(3)
        altered = (window == ALTERED) & F.col("value").cast("string").endswith("7}")
        pipeline.load(
            rows.union(doubled).withColumn("value", F.when(altered, F.lit(b"{}")).otherwise(F.col("value")))
        )
        pipeline.auditor(silent_after_ms=-10_000).run_once()
        arguments = [
            "audit", "report", "orders", "--certificates", pipeline.verdicts_topic,
            "--bootstrap", broker.bootstrap, "--output", str(chart),
        ]  # fmt: skip
        return CliRunner().invoke(cli, arguments, catch_exceptions=False).output


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chart", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        print(run(Path(directory), chosen.chart))


if __name__ == "__main__":
    main()
