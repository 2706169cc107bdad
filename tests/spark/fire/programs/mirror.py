"""The driver of a mirror: from one topic into another of the same brokers, as configured by a file.

`python -m tests.spark.fire.programs.mirror ORDERS`

`headrace mirror run` would do; this one also leaves a mark for each batch that it begins, at the place and in
the form of a checkpoint, by which a round knows when to strike.
"""

from __future__ import annotations

import sys
from pathlib import Path

from headrace.spark import session
from headrace.spark.mirror import config, job
from headrace.spark.mirror.config import MirrorConfig
from headrace.spark.mirror.job import Mirror
from headrace.spark.mirror.plan import Seen, Step
from tests.spark.fire.orders import Orders


def configured(orders: Orders) -> MirrorConfig:
    path = orders.path / "mirror.toml"
    brokers = f'"bootstrap.servers" = "{orders.bootstrap}"'
    path.write_text(
        f"""
[source]
{brokers}
[target]
{brokers}
[mirror]
name = "{orders.target}"
trigger = "100ms"
max_records_per_batch = {orders.batch_records}
replication_factor = 3
[[topics]]
name = "{orders.source}"
target = "{orders.target}"
"""
    )
    return config.load(path)


class Marks:
    """`offsets` has a file for each batch that was begun, `commits` for each that is over."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        for name in ("offsets", "commits"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        (directory / "metadata").touch()

    def __call__(self, mirror: Mirror, seen: Seen, planned: Step) -> None:
        for begun in (self._directory / "offsets").iterdir():
            over = self._directory / "commits" / begun.name
            if int(begun.name) <= mirror.position.number and not over.exists():
                over.touch()
        if planned.end:
            (self._directory / "offsets" / str(planned.after.number)).touch()


def main() -> None:
    orders = Orders.from_json(sys.argv[1])
    spark = session(
        "under-fire", master=orders.master, warehouse=orders.path / "warehouse", extra=orders.settings
    )
    spark.sparkContext.setLogLevel("WARN")
    marks = Marks(orders.path / "checkpoint")
    job.run(spark, configured(orders), once=orders.finish, told=marks)
    spark.stop()


if __name__ == "__main__":
    main()
