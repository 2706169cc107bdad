"""`python -m tests.simulation.tier --seeds 0..1000`, `--seed 7 --trace`, `--without settle_first`.

`--guards` switches one safeguard off after the other, and says how many seeds it takes to notice.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from dataclasses import fields

from headrace.tier.safeguards import TierSafeguards
from tests.simulation.tier.run import run_seed, switched_off
from tests.simulation.tier.test_safeguards import failure_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.tier")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", default="0..200", help="FIRST..LAST, the last not included")
    parser.add_argument("--trace", action="store_true", help="print what happens")
    parser.add_argument("--without", help="switch a safeguard off, or several with + between them")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first failure")
    parser.add_argument(
        "--guards", action="store_true", help="how many seeds it takes to miss each safeguard"
    )
    given = parser.parse_args()
    switched_off(given.without)  # or it says that there is none
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"  # so that every seed is the run that its number says
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation.tier", *sys.argv[1:]])
    first, _, last = given.seeds.partition("..")
    seeds = range(int(first), int(last)) if given.seed is None else range(given.seed, given.seed + 1)
    return guards(seeds) if given.guards else search(seeds, given)


def search(seeds: range, given: argparse.Namespace) -> int:
    began, failures, tried = time.process_time(), 0, 0
    counts: Counter[str] = Counter()
    for seed in seeds:
        outcome = run_seed(seed, without=given.without, trace=print if given.trace else None)
        tried += 1
        counts.update(outcome.counts)
        if outcome.failure is not None:
            failures += 1
            option = f" --without {given.without}" if given.without else ""
            print(f"seed {seed} failed: {outcome.where if given.trace else repr(outcome.failure)}")
            print(f"replay: python -m tests.simulation.tier --seed {seed}{option} --trace", flush=True)
            if not given.keep_going:
                break
        if tried % 1000 == 0:
            print(f"{tried} seeds, {failures} failures", flush=True)
    each = (time.process_time() - began) / max(tried, 1)
    print(f"{tried} seeds, {failures} failures, {each:.3f} s each")
    print(", ".join(f"{count:,} {name}" for name, count in sorted(counts.items())))
    return 1 if failures else 0


def guards(seeds: range) -> int:
    print("| Switched off | Seeds | What noticed |\n|---|--:|---|", flush=True)
    missed = 0
    for name in (each.name for each in fields(TierSafeguards)):
        for tried, seed in enumerate(seeds, 1):
            failure = failure_of(seed, name, is_off=True)
            if failure is not None:
                print(f"| `{name}` | {tried} | {str(failure).splitlines()[0][:150]} |", flush=True)
                break
        else:
            missed += 1
            print(f"| `{name}` | not in {len(seeds)} | |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
