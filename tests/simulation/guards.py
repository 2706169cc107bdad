"""How many seeds it takes until the absence of each safeguard is seen: `python -m tests.simulation.guards`.

Prints a row of a Markdown table for each. `--only NAME` takes up one of them (several with `+` are switched
off together), `--limit` ends the search, `--skip` goes on where one ended.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from itertools import count, islice
from random import Random

from tests.simulation.damage_seeds import FIRST_DAMAGED
from tests.simulation.replicas import InvariantBroken
from tests.simulation.run import AnomalyFound, Outcome, run_seed
from tests.simulation.switched_off import damage_safeguard_names, safeguard_names, switched_off
from tests.simulation.themes import FIRST_THEMED, THEMES, draw_themed
from tests.simulation.transaction_run import run_transactions

OF_TRANSACTIONS = ("side_files",)
"""Safeguards that nobody misses who has no transactions."""
ORDINARY = 60
"""So many seeds without a theme come first, as they are cheap; what they miss needs a coincidence."""


def seeds(ordinary: int, limit: int, theme: str = "", *, damage: bool = False) -> Iterator[int]:
    """`theme`: only seeds with a theme that is called so, or in part; `damage`: those with damaged files."""
    if damage:
        yield from range(FIRST_DAMAGED, FIRST_DAMAGED + limit)
    elif theme:
        fitting = (seed for seed in count(FIRST_THEMED) if theme in draw_themed(Random(seed)).theme)
        yield from islice(fitting, limit)
    else:
        yield from range(min(ordinary, limit))
        yield from range(FIRST_THEMED, FIRST_THEMED + max(0, limit - ordinary))


def search(without: str, tried: Iterator[int]) -> tuple[int, Outcome | None]:
    """How many seeds it took, and the run that failed; None if none did."""
    number = 0
    for number, seed in enumerate(tried, 1):
        outcome = (run_transactions if without in OF_TRANSACTIONS else run_seed)(seed, without=without)
        if outcome.failure is not None:
            return number, outcome
    return number, None


def noticed(outcome: Outcome) -> str:
    """What saw it, in a few words."""
    failure = outcome.failure
    if isinstance(failure, InvariantBroken):
        return failure.name
    if isinstance(failure, AnomalyFound):
        return f"the checker: {str(failure).splitlines()[1]}"
    return f"liveness: {failure}"


def row(without: str, skip: int, tried: int, outcome: Outcome | None) -> str:
    name = without.replace("+", "` and `")
    if outcome is None:
        return f"| `{name}` | not in {skip + tried} | | |"
    where = outcome.plan.theme or "no theme"
    return f"| `{name}` | {skip + tried} | {outcome.seed} ({where}) | {noticed(outcome)} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.guards")
    parser.add_argument("--only", action="append", help="this one; several with + are off together")
    parser.add_argument("--limit", type=int, default=1000, help="seeds for each, at most (default: 1000)")
    parser.add_argument("--ordinary", type=int, default=ORDINARY, help="of these without a theme, first")
    parser.add_argument("--skip", type=int, default=0, help="seeds that were tried before")
    parser.add_argument("--theme", default="", help="only seeds of this theme")
    parser.add_argument("--damage", action="store_true", help="the checks for damaged files")
    given = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"  # so that every seed is the run that its number says
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation.guards", *sys.argv[1:]])
    if not any(given.theme in theme.name for theme in THEMES):
        parser.error(f"no theme is called {given.theme}; there are {', '.join(each.name for each in THEMES)}")
    names = given.only or (damage_safeguard_names() if given.damage else safeguard_names())
    for name in names:
        switched_off(name)  # or it says which there are
    print("| Switched off | Seeds | Found by | What noticed |\n|---|--:|---|---|", flush=True)
    missed = 0
    for name in names:
        every = seeds(given.ordinary, given.limit, given.theme, damage=given.damage)
        tried = islice(every, given.skip, None)
        number, outcome = search(name, tried)
        missed += outcome is None
        print(row(name, given.skip, number, outcome), flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
