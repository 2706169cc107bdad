"""Seeds in chunks, so that several processes share them; one that fails says how to play it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def run_all(run_seed: Callable[[int], object], seeds: Iterable[int]) -> None:
    for seed in seeds:
        try:
            run_seed(seed)
        except Exception as error:
            source = run_seed.__module__
            error.add_note(f"replay: python -c 'from {source} import run_seed; run_seed({seed})'")
            raise
