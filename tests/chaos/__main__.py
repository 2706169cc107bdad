"""Chaos for as long as you like: `python -m tests.chaos --minutes 60 --seed 7`."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.chaos import nemeses
from tests.chaos import network as networks
from tests.chaos.run import Plan, run
from tests.chaos.testbed import Equipment


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument(
        "--seed", type=int, default=None, help="repeats the plan of a run; by chance if not given"
    )
    parser.add_argument("--target", choices=("headrace", "kafka"), default="headrace")
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rate", type=float, default=100.0, help="records a second of each producer")
    parser.add_argument("--zookeepers", type=int, default=3)
    parser.add_argument(
        "--transactions", action="store_true", help="four transactional clients beside one plain producer"
    )
    parser.add_argument("--no-java", action="store_true")
    parser.add_argument(
        "--no-faults", action="store_true", help="only load: a log can fail in good health too"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=[kind.name for kind in nemeses.ALL],
        help="these nemeses",
    )
    parser.add_argument("--long-faults", action="store_true", help="5 to 30 s instead of 2 to 8")
    parser.add_argument("--directory", type=Path, help="where the history goes; a temporary one if not given")
    given = parser.parse_args()
    root = networks.unavailable()
    if root:
        print(f"without cuts and small disks: {root}")
    plan = Plan(
        seed=random.SystemRandom().randrange(10**6) if given.seed is None else given.seed,
        seconds=given.minutes * 60,
        target=given.target,
        equipment=Equipment(
            hosts=root is None,
            relays=True,
            faults=True,
            disk_megabytes=0 if root else 512,
            zookeepers=given.zookeepers,
        ),
        brokers=given.brokers,
        partitions=given.partitions,
        java=not given.no_java and not given.transactions,
        producers=1 if given.transactions else 2,
        transactional=4 if given.transactions else 0,
        rate=given.rate,
        hold=(5.0, 30.0) if given.long_faults or given.minutes > 10 else (2.0, 8.0),
        names=["none"] if given.no_faults else given.only,
    )
    directory = given.directory or Path(tempfile.mkdtemp(prefix="chaos-"))
    print(f"seed {plan.seed}, in {directory}", flush=True)
    report = run(plan, directory, lambda text: print(text, flush=True))
    print(report, flush=True)
    if report.good:
        shutil.rmtree(directory / "cluster", ignore_errors=True)
    return 0 if report.good else 1


if __name__ == "__main__":
    sys.exit(main())
