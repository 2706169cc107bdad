"""`python -m tests.simulation --seed 7 --trace`, `--seeds 0..1000`, `--without maximal_isr`.

Seeds from 1,000,000 on have a theme.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback

from tests.simulation.run import Outcome, run_seed
from tests.simulation.switched_off import switched_off


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", help="FIRST..LAST, the last not included")
    parser.add_argument("--trace", action="store_true", help="print what happens")
    parser.add_argument("--without", help="switch a safeguard off, or several with + between them")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first failure")
    given = parser.parse_args()
    switched_off(given.without)  # or it says which there are
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets of strings must not decide anything, but a replay must be exact even if it does.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    seeds = range(given.seed, given.seed + 1) if given.seed is not None else _range(given.seeds or "0..100")
    began = time.process_time()
    failures = 0
    for count, seed in enumerate(seeds, 1):
        outcome = run_seed(seed, without=given.without, on_event=print if given.trace else None)
        if given.seed is not None:
            print(outcome)
            print(outcome.plan)
        if outcome.failure is not None:
            failures += 1
            report(outcome, given.without, given.trace)
            if not given.keep_going:
                break
        if count % 500 == 0:
            print(f"{count} seeds, {(time.process_time() - began) / count:.3f} s each", flush=True)
    spent = time.process_time() - began
    print(f"{count} seeds, {failures} failures, {spent / count:.3f} s each")
    return 1 if failures else 0


def report(outcome: Outcome, without: str | None, given_trace: bool) -> None:
    option = f" --without {without}" if without else ""
    failure = outcome.failure
    print(f"seed {outcome.seed} failed: {type(failure).__name__}: {failure}")
    if failure is not None and failure.__cause__ is not None:
        traceback.print_exception(failure.__cause__)
    elif failure is not None and type(failure).__module__ == "builtins":
        traceback.print_exception(failure)
    if outcome.failure is not None and given_trace:
        print(outcome.state)
    print(f"replay: python -m tests.simulation --seed {outcome.seed}{option} --trace", flush=True)


def _range(text: str) -> range:
    first, _, last = text.partition("..")
    return range(int(first), int(last))


if __name__ == "__main__":
    sys.exit(main())
