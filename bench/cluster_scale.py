"""`python -m bench.cluster_scale`: three brokers with ten thousand partitions of three replicas.

How long it takes to create them, to restart a broker until it is in sync again, and to fail over when one is
killed, until every partition has a leader that serves; what a partition costs in memory, and all of them
together in idle CPU. One run on one machine: the three brokers, ZooKeeper and this program share its cores.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from tests.cluster_process import HeadraceCluster, PartitionView
from tests.wire import Wire

from bench.process_cost import cpu_seconds
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from headrace.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse
from headrace.protocol.messages.elect_leaders_request import ElectLeadersRequest
from headrace.protocol.messages.elect_leaders_response import ElectLeadersResponse
from headrace.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.list_offsets_response import ListOffsetsResponse

LATEST: Final = -1
LIMIT_SECONDS: Final = 600.0
Rows = Mapping[tuple[str, int], PartitionView]


@dataclass
class Figures:
    partitions: int
    create_request_s: list[float] = field(default_factory=list)
    create_hosted_s: float = 0.0
    create_cpu_s: float = 0.0
    empty_mb: list[float] = field(default_factory=list)
    full_mb: list[float] = field(default_factory=list)
    idle_cores: list[float] = field(default_factory=list)
    stop_s: float = 0.0
    start_s: float = 0.0
    restart_in_sync_s: float = 0.0
    start_cpu_s: float = 0.0
    election_s: float = 0.0
    failover_leaders_s: dict[str, float] = field(default_factory=dict)
    failover_served_s: dict[str, float] = field(default_factory=dict)
    failover_in_sync_s: dict[str, float] = field(default_factory=dict)
    failover_cpu_s: dict[str, float] = field(default_factory=dict)
    zookeeper_writes: dict[str, int] = field(default_factory=dict)

    @property
    def bytes_per_partition(self) -> float:
        """Of one broker, which has a replica of each."""
        grown = max(full - empty for full, empty in zip(self.full_mb, self.empty_mb, strict=True))
        return grown * 1e6 / self.partitions


class Scale:
    def __init__(self, cluster: HeadraceCluster, partitions: int, at_once: int) -> None:
        self.cluster = cluster
        self.at_once = at_once
        self.figures = Figures(partitions)
        self.topics: list[str] = []

    def rows(self, number: int) -> Rows:
        return self.cluster.ask(number, *self.topics, timeout=30).partitions

    def wait(self, what: str, condition: Callable[[], bool], pause: float = 0.05) -> float:
        """The seconds until it is true."""
        began = time.monotonic()
        while not self._holds(condition):
            if time.monotonic() - began > LIMIT_SECONDS:
                raise RuntimeError(f"not within {LIMIT_SECONDS:g} s: {what}\n{self.cluster.tails()}")
            time.sleep(pause)
        taken = time.monotonic() - began
        print(f"{what}: {taken:.2f} s", flush=True)
        return taken

    @staticmethod
    def _holds(condition: Callable[[], bool]) -> bool:
        try:
            return condition()
        except (OSError, EOFError):
            return False

    def in_sync(self) -> bool:
        rows = self.rows(self.living())
        return len(rows) == self.figures.partitions and all(len(row.isr) == 3 for row in rows.values())

    def living(self) -> int:
        return next(number for number, broker in self.cluster.brokers.items() if broker.running)

    def resident_mb(self) -> list[float]:
        return [broker.resident_bytes() / 1e6 for broker in self.cluster.brokers.values()]

    def cpu(self) -> list[float]:
        return [cpu_seconds(broker.pid) for broker in self.cluster.brokers.values() if broker.running]

    def hosted(self) -> bool:
        """A new topic is in sync from its first moment on; what is open tells how far the brokers are."""
        for broker in self.cluster.brokers.values():
            with Wire(broker.port, timeout=60) as wire:
                request = DescribeLogDirsRequest(topics=None)
                answer: DescribeLogDirsResponse = wire.ask(request, 1, DescribeLogDirsResponse)
            found = [
                len(topic.partitions)
                for result in answer.results
                for topic in result.topics
                if topic.name in self.topics
            ]
            if sum(found) < self.figures.partitions:
                return False
        return True

    # --- what is measured -----------------------------------------------------------------------------------

    def create(self) -> None:
        self.figures.empty_mb = self.resident_mb()
        cpu = self.cpu()
        began = time.monotonic()
        with Wire(self.cluster.brokers[1].port, timeout=LIMIT_SECONDS) as wire:
            for start in range(0, self.figures.partitions, self.at_once):
                count = min(self.at_once, self.figures.partitions - start)
                self.topics.append(f"scale-{start}")
                topic = CreatableTopic(
                    name=self.topics[-1],
                    num_partitions=count,
                    replication_factor=3,
                    assignments=[],
                    configs=[],
                )
                asked = time.monotonic()
                request = CreateTopicsRequest(topics=[topic], timeout_ms=int(LIMIT_SECONDS * 1000))
                answer: CreateTopicsResponse = wire.ask(request, 5, CreateTopicsResponse)
                if answer.topics[0].error_code:
                    raise RuntimeError(str(answer.topics[0]))
                self.figures.create_request_s.append(time.monotonic() - asked)
                print(f"{start + count} partitions: {self.figures.create_request_s[-1]:.2f} s", flush=True)
        self.wait("every broker has every partition open", self.hosted, pause=1.0)
        self.figures.create_hosted_s = time.monotonic() - began
        self.figures.create_cpu_s = max(after - before for after, before in zip(self.cpu(), cpu, strict=True))

    def rest(self, seconds: float) -> None:
        time.sleep(5)
        self.figures.full_mb = self.resident_mb()
        before = self.cpu()
        time.sleep(seconds)
        self.figures.idle_cores = [
            (after - then) / seconds for after, then in zip(self.cpu(), before, strict=True)
        ]

    def restart(self, number: int) -> None:
        began = time.monotonic()
        self.cluster.terminate(number)
        self.cluster.wait_ended(number, LIMIT_SECONDS)
        self.figures.stop_s = time.monotonic() - began
        began = time.monotonic()
        self.cluster.restart(number)
        self.wait("the broker answers", lambda: bool(self.cluster.ask(number).brokers))
        self.figures.start_s = time.monotonic() - began
        self.figures.start_cpu_s = cpu_seconds(self.cluster.brokers[number].pid)
        self.wait("in sync after a restart", self.in_sync, pause=1.0)
        self.figures.restart_in_sync_s = time.monotonic() - began

    def elect_preferred(self) -> None:
        """Everybody leads a third again."""
        began = time.monotonic()
        with Wire(self.cluster.brokers[self.living()].port, timeout=LIMIT_SECONDS) as wire:
            request = ElectLeadersRequest(
                election_type=0, topic_partitions=None, timeout_ms=int(LIMIT_SECONDS * 1000)
            )
            wire.ask(request, 2, ElectLeadersResponse)
        self.figures.election_s = time.monotonic() - began
        self.wait(
            "preferred leaders lead",
            lambda: all(row.leader == row.replicas[0] for row in self.rows(self.living()).values()),
        )

    def fail_over(self, way: str, victim: int) -> None:
        led = [key for key, row in self.rows(self.living()).items() if row.leader == victim]
        print(f"{way} {victim} leads {len(led)} partitions", flush=True)
        written = self.cluster.zookeeper.leader().zxid()
        survivors = [broker.pid for number, broker in self.cluster.brokers.items() if number != victim]
        cpu = [cpu_seconds(pid) for pid in survivors]
        began = time.monotonic()
        self.cluster.kill(victim)

        def led_by_others(*topics: str) -> bool:
            rows = self.cluster.ask(self.living(), *topics, timeout=30).partitions
            return all(rows[key].leader not in (victim, -1) for key in led if key[0] in topics)

        # Asking for all of them costs a survivor more than the election does: one topic tells when to ask.
        self.wait("a topic has leaders", lambda: led_by_others(self.topics[-1]))
        self.wait("every partition has a leader", lambda: led_by_others(*self.topics))
        self.figures.failover_leaders_s[way] = time.monotonic() - began
        self.wait("every partition is served", lambda: self.served(led), pause=0.2)
        self.figures.failover_served_s[way] = time.monotonic() - began
        self.figures.failover_cpu_s[way] = max(
            cpu_seconds(pid) - before for pid, before in zip(survivors, cpu, strict=True)
        )
        self.figures.zookeeper_writes[way] = self.cluster.zookeeper.leader().zxid() - written
        began = time.monotonic()
        self.cluster.restart(victim)
        self.wait("in sync after a failover", self.in_sync, pause=1.0)
        self.figures.failover_in_sync_s[way] = time.monotonic() - began

    def served(self, partitions: list[tuple[str, int]]) -> bool:
        """Every new leader tells the end of what is committed, which it may not before it has caught up."""
        rows = self.rows(self.living())
        by_leader: dict[int, dict[str, list[int]]] = {}
        for topic, index in partitions:
            leader = rows[topic, index].leader
            by_leader.setdefault(leader, {}).setdefault(topic, []).append(index)
        for leader, topics in by_leader.items():
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=0,
                topics=[
                    ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            ListOffsetsPartition(
                                partition_index=index, current_leader_epoch=-1, timestamp=LATEST
                            )
                            for index in indexes
                        ],
                    )
                    for topic, indexes in topics.items()
                ],
            )
            with Wire(self.cluster.brokers[leader].port, timeout=30) as wire:
                answer: ListOffsetsResponse = wire.ask(request, 6, ListOffsetsResponse)
            if any(row.error_code for topic in answer.topics for row in topic.partitions):
                return False
        return True


def table(figures: Figures) -> str:
    rows = [
        ("create, all requests", f"{sum(figures.create_request_s):.1f} s"),
        ("create, the slowest request", f"{max(figures.create_request_s):.2f} s"),
        ("create, until all are open on all brokers", f"{figures.create_hosted_s:.1f} s"),
        ("create, CPU of a broker", f"{figures.create_cpu_s:.1f} s"),
        ("memory of a broker, empty", f"{max(figures.empty_mb):.0f} MB"),
        ("memory of a broker, full", f"{max(figures.full_mb):.0f} MB"),
        ("memory per partition", f"{figures.bytes_per_partition / 1000:.1f} kB"),
        ("idle CPU of a broker", f"{max(figures.idle_cores) * 100:.1f} % of a core"),
        ("clean stop", f"{figures.stop_s:.1f} s"),
        ("start until it answers", f"{figures.start_s:.1f} s"),
        ("start, CPU", f"{figures.start_cpu_s:.1f} s"),
        ("start until in sync everywhere", f"{figures.restart_in_sync_s:.1f} s"),
        ("preferred leaders elected, all of them", f"{figures.election_s:.1f} s"),
    ]
    for way in figures.failover_leaders_s:
        rows += [
            (f"{way} killed, until all have leaders", f"{figures.failover_leaders_s[way]:.2f} s"),
            (f"{way} killed, until all are served", f"{figures.failover_served_s[way]:.2f} s"),
            (f"{way} killed, CPU of a survivor", f"{figures.failover_cpu_s[way]:.2f} s"),
            (f"{way} killed, writes to ZooKeeper until then", str(figures.zookeeper_writes[way])),
            (f"{way} started again, until in sync", f"{figures.failover_in_sync_s[way]:.1f} s"),
        ]
    width = max(len(name) for name, _ in rows)
    lines = [f"| {f'{figures.partitions:,} partitions':{width}} | |", f"|{'-' * (width + 2)}|--:|"]
    return "\n".join([*lines, *(f"| {name:{width}} | {value} |" for name, value in rows)])


@contextmanager
def started(directory: Path) -> Iterator[HeadraceCluster]:
    properties = {"min.insync.replicas": "2", "auto.leader.rebalance.enable": "false"}
    with HeadraceCluster(directory, 3, properties) as cluster:
        for broker in cluster.brokers.values():
            broker.START_SECONDS = LIMIT_SECONDS
        yield cluster


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster_scale", description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--at-once", type=int, default=1000, help="partitions in one request to create them")
    parser.add_argument("--idle-seconds", type=float, default=20)
    parser.add_argument("--output", type=Path, help="a JSON file for the figures")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="cluster-scale-") as directory,
        started(Path(directory)) as cluster,
    ):
        scale = Scale(cluster, given.partitions, given.at_once)
        scale.create()
        scale.rest(given.idle_seconds)
        controller = cluster.view().controller
        other = next(number for number in cluster.brokers if number != controller)
        scale.restart(other)
        scale.elect_preferred()
        scale.fail_over("a broker", other)
        scale.elect_preferred()
        scale.fail_over("the controller", cluster.view().controller)
    if given.output:
        given.output.write_text(json.dumps(asdict(scale.figures), indent=1) + "\n")
    print(table(scale.figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
