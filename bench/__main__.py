"""`python -m bench`: Headrace against Apache Kafka, on this machine, in one run.

python -m bench [CASE ...] [--quick]      measure; all cases unless some are named
python -m bench [CASE ...] --before PATH  the same beside an earlier build of Headrace instead of Kafka
python -m bench list                      the names of the cases
python -m bench chart RESULT.json ...     table and chart of earlier runs
python -m bench profile CASE              where Headrace's CPU goes
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench import apache_kafka, catalogue, profiler, results, runner, table
from bench.case import Make, Scale, Side
from bench.chart import of_run, save
from bench.headrace_broker import Headrace
from bench.load_generator import build
from bench.protection import Protection
from bench.quantity import Comparison

QUICK_FACTOR = 0.02
QUICK_COLD_BYTES = 50_000_000
CACHE = apache_kafka.ROOT / ".cache" / "bench"


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="CASE", help="a case, a group, or list, chart, profile")
    parser.add_argument("--runs", type=int, default=5, help="measured runs of each side (default 5)")
    parser.add_argument("--warm", type=int, default=1, help="unreported runs of each side first (default 1)")
    parser.add_argument("--quick", action="store_true", help="a tiny load: shows that the bench works")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the whole load (default 1)")
    parser.add_argument("--cold-gb", type=float, default=4.0, help="size of the cold read (default 4)")
    parser.add_argument("--subject", choices=("headrace", "kafka"), default="headrace",
                        help="what to compare with Kafka; Kafka against itself shows the noise")  # fmt: skip
    parser.add_argument("--before", type=Path, metavar="COMMAND",
                        help="compare with the `headrace` command of an earlier build instead")  # fmt: skip
    parser.add_argument("--secure", action="store_true",
                        help="all by SASL_SSL: small, produce, consume, replicated")  # fmt: skip
    parser.add_argument("--directory", type=Path, default=CACHE, help="where the brokers keep their data")
    parser.add_argument("--chart", type=Path, help="where to draw the chart (default: beside the results)")
    parser.add_argument("--native", action="store_true", help="profile: show native frames too")
    parser.add_argument("--perf", action="store_true", help="profile: record with perf as well")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    options = arguments(words)
    match options.words:
        case ["list", *_]:
            for one in catalogue.CASES:
                print(f"{one.name:18} {one.group:12} {one.title}")
            return 0
        case ["chart", *paths]:
            return redraw([Path(path) for path in paths], options.chart)
        case ["profile", *names]:
            return profile(names, options)
        case _:
            return measure(options)


def subject(name: str, jars: Path | None, protection: Protection | None) -> Make:
    if name == "kafka":
        jars = jars or apache_kafka.find_jars()
        return apache_kafka.ApacheKafka(jars, name="Kafka as subject", protection=protection)
    return Headrace(protection=protection)


def reference(before: Path | None, jars: Path | None, protection: Protection | None) -> Make:
    """What Headrace is compared with."""
    if before is not None:
        return Headrace("before", before.absolute(), protection=protection)
    return apache_kafka.ApacheKafka(jars or apache_kafka.find_jars(), protection=protection)


def scale_of(options: argparse.Namespace) -> Scale:
    if options.quick:
        return Scale(QUICK_FACTOR, QUICK_COLD_BYTES)
    return Scale(options.scale, int(options.cold_gb * 1e9))


def measure(options: argparse.Namespace) -> int:
    names = options.words or (catalogue.QUICK if options.quick else ())
    cases = catalogue.select(names)
    jars = None if options.before else apache_kafka.find_jars()
    build()
    options.directory.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="run-", dir=options.directory))
    scale = scale_of(options)
    protection = Protection.make(directory / "certificates", Headrace().command) if options.secure else None
    ours = Side(subject(options.subject, jars, protection), directory / "ours", scale)
    theirs = Side(reference(options.before, jars, protection), directory / "theirs", scale)
    runs = 1 if options.quick else options.runs
    judged = (
        not options.quick and not options.secure and options.before is None
    )  # the targets are multiples of Kafka's figures
    settings = runner.Settings(runs, 0 if options.quick else options.warm, tell, judged)
    when = datetime.now(UTC)
    python = Headrace().python()
    tell(f"Headrace's Python: {python or 'unknown'}")
    try:
        found, failures = runner.run_all(cases, ours, theirs, settings)
    finally:
        for side in (ours, theirs):
            side.close()
        shutil.rmtree(directory, ignore_errors=True)
    scratch = options.quick or options.subject != "headrace" or options.scale != 1.0
    described = {"runs": runs, "warm": settings.warm_runs, "scale": scale.factor,
                 "cold_bytes": scale.cold_bytes, "subject": options.subject}  # fmt: skip
    if options.secure:
        described["protocol"] = "SASL_SSL"
    if options.before is not None:
        described["reference"] = "an earlier build of Headrace"
    path = results.save(found, failures, described, when, python=python, scratch=scratch)
    noise = [cores for result in found for cores in result.noise_cores()]
    comparisons = [row for result in found for row in result.comparisons()]
    caption = (
        f"{when:%Y-%m-%d}, median of {runs} runs, others used {median(noise or [0.0]):.2f} cores meanwhile"
    )
    if options.quick:
        caption += "; a quick run: the JVM is cold and the load is tiny, so no ratio here means anything"
    if options.before is not None:
        print(f"\n{table.render(comparisons, table.NOW_AND_BEFORE)}\n\n{caption}")
    else:
        show(comparisons, options.chart or path.with_suffix(".svg"), caption)
    print(f"results: {path}")
    for name, why in failures.items():
        print(f"FAILED {name}: {why}", file=sys.stderr)
    return 1 if failures or not all(map(is_sane, comparisons)) else 0


def is_sane(comparison: Comparison) -> bool:
    """A ratio that no two working brokers can have means that the bench is broken."""
    if math.isnan(comparison.ratio) or comparison.quantity.unit == "B":
        return True  # memory may shrink meanwhile
    return 0.0 <= comparison.ratio < 1000.0 and comparison.our_median >= 0.0


def show(comparisons: Sequence[Comparison], chart: Path, caption: str) -> None:
    print(f"\n{table.render(comparisons)}\n\n{caption}")
    save(of_run(comparisons, f"Apache Kafka {apache_kafka.VERSION}", caption), chart)
    print(f"chart: {chart}")


def redraw(paths: Sequence[Path], chart: Path | None) -> int:
    if not paths:
        print("name at least one result file", file=sys.stderr)
        return 2
    show(results.load(paths), chart or paths[-1].with_suffix(".svg"), ", ".join(path.stem for path in paths))
    return 0


def profile(names: Sequence[str], options: argparse.Namespace) -> int:
    options.directory.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="profile-", dir=options.directory))
    recordings = options.directory / "profiles"
    protection = Protection.make(directory / "certificates", Headrace().command) if options.secure else None
    for case in catalogue.select(names):
        side = Side(Headrace(protection=protection), directory / "ours", scale_of(options))
        try:
            summary = profiler.profile(case, side, recordings, native=options.native, with_perf=options.perf)
        finally:
            side.close()
        print(f"{case.name}: {case.title}\n{summary}\n\nrecordings: {recordings}\n")
    shutil.rmtree(directory, ignore_errors=True)
    return 0


def tell(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ValueError as error:
        sys.exit(f"bench: {error}")
