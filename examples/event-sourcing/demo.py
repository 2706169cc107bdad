"""Tellers send commands while writer and lookup service are killed; log, lookup and table must agree."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from accounts import Account
from check import Verdict, check
from tellers import Done, look_up, work
from topics import create_topics


class Lookup:
    """The service as a process."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap, self.port = bootstrap, 0
        self.start()
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "lookup.py", self.bootstrap, str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def events(self) -> int:
        """That it has seen: the version of an account is the number of its events."""
        return sum(account.version for account in self.all().values())

    def all(self) -> dict[str, Account]:
        look_up(self.url, "any")  # waits until it has read all events
        with urllib.request.urlopen(f"{self.url}/accounts", timeout=10) as answer:
            return {name: Account(**account) for name, account in json.load(answer).items()}


def run(bootstrap: str, directory: Path, tellers: int, commands: int, with_spark: bool) -> Verdict:
    create_topics(bootstrap)
    table = Table(bootstrap, directory) if with_spark else None
    writer, lookup = start_writer(bootstrap), Lookup(bootstrap)
    try:
        with ThreadPoolExecutor(1) as pool:
            working = pool.submit(work, bootstrap, lookup.url, tellers, commands)
            until(lambda: lookup.events() > tellers * commands // 4)
            writer.kill()
            writer.wait()
            print(f"the writer was killed after {lookup.events():,} events, and is started again")
            writer = start_writer(bootstrap)
            if table is not None:
                print(f"the table has {len(table.accounts())} accounts, while the tellers go on")
            until(lambda: working.done() or lookup.events() > tellers * commands // 2)
            print(f"the lookup service is killed after {lookup.events():,} events: it reads them all again")
            lookup.kill()
            lookup.start()
            done = working.result()
        verdict = check(bootstrap, done)
        until(lambda: lookup.all() == verdict.accounts, 30)  # it follows the log, a little later
        verdict.compare("the lookup service", lookup.all())
        if table is not None:
            verdict.compare("the table", table.accounts())
    finally:
        writer.terminate()
        writer.wait(60)
        lookup.kill()
        if table is not None:
            table.spark.stop()
    tell(verdict, done, with_spark)
    return verdict


class Table:
    def __init__(self, bootstrap: str, directory: Path) -> None:
        import view

        from headrace.spark import session

        self.view, self.file = view, view.configuration(bootstrap, directory)
        self.spark = session("bank", warehouse=directory / "warehouse", extra=view.SMALL)
        self.spark.sparkContext.setLogLevel("ERROR")

    def accounts(self) -> dict[str, Account]:
        return self.view.accounts_in(self.view.bring_up(self.spark, self.file))


def start_writer(bootstrap: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "writer.py", bootstrap])


def until(done: object, seconds: float = 150) -> None:
    assert callable(done)
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.1)


def tell(verdict: Verdict, done: Done, with_spark: bool) -> None:
    print("account      version  balance")
    for name, account in sorted(verdict.accounts.items()):
        print(f"{name:12} {account.version:7,} {account.balance:8,}")
    print(f"accepted commands    {done.accepted:6,}")
    print(f"events in the log    {verdict.events:6,}")
    print(f"version was too old  {done.conflicts:6,}   (another teller was faster; decided again)")
    print(f"not enough money     {done.refused:6,}")
    views = "log, lookup service and table" if with_spark else "log and lookup service"
    print(f"{views} agree on every account" if verdict.holds else f"WRONG: {verdict.differences}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT")
    parser.add_argument("--tellers", type=int, default=6)
    parser.add_argument("--commands", type=int, default=200, help="of each teller")
    parser.add_argument("--no-spark", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        verdict = run(
            arguments.bootstrap,
            Path(temporary),
            arguments.tellers,
            arguments.commands,
            not arguments.no_spark,
        )
    sys.exit(not verdict.holds)
