"""`python -m tests.hostile.fuzz --minutes 10`: every target in turn, two at a time, guided by coverage.

Inputs that reached something new are kept with `--keep`. A crash stays in build/fuzz/crashes, the command
says so and ends with 1; add its bytes to tests/hostile/corpus once it is mended.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.hostile.fuzz import corpus
from tests.hostile.fuzz.targets import TARGETS

_BUILD = Path("build/fuzz")
_LONGEST_INPUT = 4096
_MEMORY_MB = 1024


def fuzz(name: str, seconds: int, seed: int) -> tuple[str, int]:
    """What libFuzzer says at its end, and how it ended."""
    inputs, crashes = _BUILD / "corpus" / name, _BUILD / "crashes"
    inputs.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(exist_ok=True)
    for each in corpus.first(name):
        (inputs / hashlib.sha256(each).hexdigest()[:16]).write_bytes(each)
    command = [
        sys.executable, "-m", "tests.hostile.fuzz.one", name,
        f"-max_total_time={seconds}", f"-max_len={_LONGEST_INPUT}", f"-rss_limit_mb={_MEMORY_MB}",
        f"-seed={seed}", "-timeout=120", "-print_final_stats=1",
        f"-artifact_prefix={crashes}/{name}-", str(inputs),
    ]  # fmt: skip
    log = _BUILD / f"{name}.log"
    with log.open("w") as output:
        ended = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
    return log.read_text(errors="replace"), ended.returncode


def _summary(output: str) -> str:
    lines = output.splitlines()
    runs = next((line.split()[-1] for line in lines if "number_of_executed_units" in line), "?")
    reached = next((line for line in reversed(lines) if " cov: " in line), "")
    words = reached.split()
    coverage = words[words.index("cov:") + 1] if "cov:" in words else "?"
    return f"{runs} inputs, {coverage} places reached"


def _keep(name: str) -> int:
    """What the search has kept, because it reached something new, and did not begin with."""
    found = {each.read_bytes() for each in (_BUILD / "corpus" / name).iterdir()} - {*corpus.first(name)}
    corpus.keep(name, [*found, *corpus.kept(name)])
    return len(found)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=10, help="of the whole, shared by the targets")
    options.add_argument("--target", choices=TARGETS, action="append", help="only this one; may be repeated")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--keep", action="store_true", help="add what reached something new to the corpus")
    given = options.parse_args()
    names = given.target or list(TARGETS)
    at_once = min(2, len(names))
    seconds = max(1, int(given.minutes * 60 * at_once / len(names)))
    failed = False
    with ThreadPoolExecutor(at_once) as pool:
        done = {name: pool.submit(fuzz, name, seconds, given.seed) for name in names}
        for name, future in done.items():
            output, code = future.result()
            print(f"{name}: {_summary(output)} in {seconds} s{'' if code == 0 else ': CRASHED'}", flush=True)
            if code:
                failed = True
                print("\n".join(output.splitlines()[-40:]))
    if given.keep:
        for name in names:
            print(f"{name}: {_keep(name)} inputs kept")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
