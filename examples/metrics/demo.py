"""Twelve hosts ship ten minutes of logs; what adds them up is killed; all counts must agree."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from check import Verdict, check
from confluent_kafka import Consumer, TopicPartition
from hosts import Hosts
from logs import LINES, MINUTE_MS, PARTITIONS, create_topics
from query import lines_of
from rollups import GROUP, read_rollups


def run(bootstrap: str, lines_a_minute: int, seconds_a_minute: float) -> Verdict:
    create_topics(bootstrap)
    minutes = 10
    begin_ms = (int(time.time() * 1000) // MINUTE_MS - minutes - 3) * MINUTE_MS
    names = [f"host-{n:02}" for n in range(12)]
    hosts = Hosts(bootstrap, names, "host-03", minutes, lines_a_minute, begin_ms, seconds_a_minute)
    rollups = start(bootstrap)
    try:
        with ThreadPoolExecutor(1) as pool:
            shipping = pool.submit(hosts.ship)
            print(f"{len(names)} hosts ship {minutes} minutes of logs; {hosts.slow} is three minutes late")
            until(lambda: added_up(bootstrap) > len(names) * lines_a_minute * minutes // 3)
            rollups.kill()
            rollups.wait()
            print(f"the rollups were killed after {added_up(bootstrap):,} lines, and are started again")
            rollups = start(bootstrap)
            shipped = shipping.result()
        until(lambda: added_up(bootstrap) == sum(host.lines for host in shipped))
    finally:
        rollups.terminate()
        rollups.wait(60)
    verdict = check(bootstrap, shipped)
    tell(bootstrap, hosts, verdict)
    return verdict


def start(bootstrap: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "rollups.py", bootstrap])


def added_up(bootstrap: str) -> int:
    """How many lines are behind the rollups: what any tool for consumer groups shows as well."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    committed = consumer.committed([TopicPartition(LINES, partition) for partition in range(PARTITIONS)], 30)
    consumer.close()
    return sum(max(place.offset, 0) for place in committed)


def until(done: object, seconds: float = 150) -> None:
    assert callable(done)
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.2)


def tell(bootstrap: str, hosts: Hosts, verdict: Verdict) -> None:
    rollups = [rollup for rollup in read_rollups(bootstrap).values() if rollup.host == hosts.slow]
    print(f"{hosts.slow}  lines  errors  mean ms  slowest ms")
    for rollup in sorted(rollups, key=lambda each: each.minute)[-3:]:
        when = time.strftime("%H:%M", time.gmtime(rollup.minute * 60))
        mean_ms = rollup.took_ms / rollup.lines
        print(f"  {when}  {rollup.lines:6,} {rollup.errors:7,} {mean_ms:8.1f} {rollup.slowest_ms:11,}")
    since_ms = hosts.begin_ms + (hosts.minutes - 2) * MINUTE_MS
    errors = [line for _, line in lines_of(bootstrap, hosts.slow, since_ms) if line.level == "ERROR"]
    print(f"its errors of two minutes: {len(errors)}; the last: {errors[-1].text if errors else 'none'}")
    print(f"shipped by the hosts  {verdict.shipped:8,}")
    print(f"lines in the log      {verdict.in_log:8,}")
    print(f"in {verdict.minutes:4,} rollups      {verdict.in_rollups:8,}")
    print("all agree, by host and minute" if verdict.holds else f"WRONG: {verdict}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT")
    parser.add_argument("--lines", type=int, default=400, help="of a host in a minute")
    parser.add_argument("--seconds", type=float, default=1.5, help="that a minute takes here")
    arguments = parser.parse_args()
    sys.exit(not run(arguments.bootstrap, arguments.lines, arguments.seconds).holds)
