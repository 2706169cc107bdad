"""Clusters of real broker processes: started together, ended one by one or all at once, by process id.

Everything dies with the process that started it, even if that is killed.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from headrace.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.describe_cluster_request import DescribeClusterRequest
from headrace.protocol.messages.describe_cluster_response import DescribeClusterResponse
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.testing.zookeeper import ZooKeeper
from tests.broker_process import BrokerProcess, HeadraceProcess, Place
from tests.chaos.relay import Relay
from tests.ports import own_port
from tests.secured_links import SecuredLinks
from tests.wire import Wire

T = TypeVar("T")
METADATA_VERSION = 9
CREATE_TOPICS_VERSION = 5
DESCRIBE_CLUSTER_VERSION = 0
#: A broker is ended by the kernel when whoever started it has ended. The thread that starts it must stay.
DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")


def eventually(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Wait until it is true. A broker that cannot be asked is not yet what the condition wants."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except (OSError, EOFError):
            pass
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.05)


class PartitionView(NamedTuple):
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class ClusterView(NamedTuple):
    """The metadata as one broker tells it."""

    brokers: dict[int, tuple[str, int]]
    controller: int
    partitions: dict[tuple[str, int], PartitionView]


class ClusterProcess:
    """Some brokers, each a process with a directory, a port and perhaps a host of its own."""

    READY_SECONDS = 240.0

    def __init__(
        self,
        directory: Path,
        brokers: int = 3,
        properties: Mapping[str, str] | None = None,
        *,
        places: Sequence[Place] | None = None,
        relayed: bool = False,
    ) -> None:
        """`relayed`: clients and brokers reach each broker through its relay, and only tests go around it."""
        self.directory = directory
        self.properties = dict(properties or {})
        self.places = list(places or [Place()] * brokers)
        assert len(self.places) == brokers
        self.brokers: dict[int, BrokerProcess] = {}
        self.paused: set[int] = set()
        self.relayed = relayed
        self.relays: dict[int, Relay] = {}
        self.adapt: Callable[[BrokerProcess], None] | None = None
        """Changes what a broker is given before its first start."""
        self.links: SecuredLinks | None = None
        """None: brokers speak plaintext with each other."""

    @property
    def bootstrap(self) -> str:
        fronts = self.relays or self.brokers
        return ",".join(f"{front.place.address}:{front.port}" for front in fronts.values())

    def make(self, broker_id: int, place: Place) -> BrokerProcess:
        """A broker that is not started yet."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Start what the brokers need."""

    def conclude(self) -> None:
        """Stop what `prepare` has started. Called also after it has failed."""

    def start(self) -> Self:
        try:
            self.prepare()
            for number, place in enumerate(self.places, 1):
                self._add(number, place)
            for broker in self.brokers.values():
                broker.launch()
            for broker in self.brokers.values():
                broker.wait_ready()
            self.wait_whole()
        except BaseException as error:
            error.add_note(self.tails())
            self.stop()
            raise
        return self

    def _add(self, number: int, place: Place) -> None:
        broker = self.make(number, place._replace(prefix=(*place.prefix, *DIES_WITH_PARENT)))
        own_host = place.address != "127.0.0.1"
        broker.port = 9092 if own_host else own_port()
        if self.links is not None:
            self.links.protect(broker)
        if self.adapt is not None:
            self.adapt(broker)
        self.brokers[number] = broker
        if self.relayed:
            relay = Relay(place, 19092 if own_host else own_port(), broker.port, seed=number).start()
            self.relays[number] = relay
            own = f"PLAINTEXT://{place.address}:{broker.port}"
            advertised = broker.listeners.replace(own, f"PLAINTEXT://{place.address}:{relay.port}")
            broker.properties["advertised.listeners"] = advertised

    def wait_whole(self, seconds: float | None = None) -> None:
        """Until every broker says that every broker is there."""
        wanted = set(self.brokers)
        eventually(
            lambda: all(self.living(broker) == wanted for broker in wanted),
            seconds or self.READY_SECONDS,
            "all brokers know all brokers",
        )

    def stop(self) -> None:
        """End everything at once. What is on disk stays until the directory goes."""
        try:
            for broker in self.brokers.values():
                broker.kill()
        finally:
            self.paused.clear()
            for relay in self.relays.values():
                relay.close()
            self.conclude()

    def tails(self) -> str:
        return "\n".join(f"--- broker {number}\n{broker.tail()}" for number, broker in self.brokers.items())

    # What may happen to one broker.

    def kill(self, broker_id: int) -> None:
        self.brokers[broker_id].kill()
        self.paused.discard(broker_id)

    def terminate(self, broker_id: int) -> None:
        """Ask it to end, and do not wait."""
        self.brokers[broker_id].signal(signal.SIGTERM)

    def pause(self, broker_id: int) -> None:
        self.brokers[broker_id].signal(signal.SIGSTOP)
        self.paused.add(broker_id)

    def resume(self, broker_id: int) -> None:
        if broker_id in self.paused and self.brokers[broker_id].running:
            self.brokers[broker_id].signal(signal.SIGCONT)
        self.paused.discard(broker_id)

    def restart(self, broker_id: int, *, wait: bool = True) -> None:
        """Start a broker that has ended."""
        broker = self.brokers[broker_id]
        assert not broker.running
        broker.launch()
        if wait:
            broker.wait_ready()

    def wait_ended(self, broker_id: int, seconds: float = 30) -> int:
        process = self.brokers[broker_id].process
        assert process is not None
        return process.wait(seconds)

    # What the brokers say.

    def ask(self, broker_id: int, *topics: str, timeout: float = 3) -> ClusterView:
        """The metadata of some topics, in the words of this broker."""
        broker = self.brokers[broker_id]
        with Wire(broker.port, host=broker.place.address, timeout=timeout) as wire:
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
            )
            answer: MetadataResponse = wire.ask(request, METADATA_VERSION, MetadataResponse)
        return ClusterView(
            {one.node_id: (one.host, one.port) for one in answer.brokers},
            answer.controller_id,
            {
                (topic.name or "", one.partition_index): PartitionView(
                    one.leader_id, one.leader_epoch, tuple(one.replica_nodes), tuple(one.isr_nodes)
                )
                for topic in answer.topics
                for one in topic.partitions
            },
        )

    def living(self, broker_id: int, timeout: float = 3) -> set[int]:
        """Who is alive, in the words of this broker. Metadata names for a while also who has just left."""
        broker = self.brokers[broker_id]
        with Wire(broker.port, host=broker.place.address, timeout=timeout) as wire:
            answer: DescribeClusterResponse = wire.ask(
                DescribeClusterRequest(), DESCRIBE_CLUSTER_VERSION, DescribeClusterResponse
            )
        return {one.broker_id for one in answer.brokers}

    def view(self, *topics: str) -> ClusterView:
        """The metadata in the words of the first broker that answers."""
        return self._first_answer(lambda number: self.ask(number, *topics))

    def alive(self) -> set[int]:
        """Who is alive, in the words of the first broker that answers."""
        return self._first_answer(self.living)

    def _first_answer(self, ask: Callable[[int], T]) -> T:
        failure: Exception | None = None
        for number, broker in self.brokers.items():
            if broker.running and number not in self.paused:
                try:
                    return ask(number)
                except (OSError, EOFError) as error:
                    failure = error
        raise EOFError("no broker answers") from failure

    def partition(self, topic: str, partition: int = 0) -> PartitionView:
        return self.view(topic).partitions[topic, partition]

    def leader(self, topic: str, partition: int = 0) -> int:
        return self.partition(topic, partition).leader

    def create_topic(
        self,
        name: str,
        assignments: Sequence[Sequence[int]],
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """One list of replicas for each partition, the first to lead. Returns when all are in sync."""
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[
                        CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
                        for index, replicas in enumerate(assignments)
                    ],
                    configs=[
                        CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
                    ],
                )
            ],
            timeout_ms=20_000,
        )
        running = next(b for n, b in self.brokers.items() if b.running and n not in self.paused)
        with Wire(running.port, host=running.place.address, timeout=30) as wire:
            answer: CreateTopicsResponse = wire.ask(request, CREATE_TOPICS_VERSION, CreateTopicsResponse)
        assert answer.topics[0].error_code == 0, answer.topics[0]
        self.wait_in_sync(name)

    def wait_in_sync(self, topic: str, seconds: float = 60) -> None:
        """Until every replica of every partition is in sync, as every broker sees it."""

        def in_sync() -> bool:
            views = [self.ask(number, topic).partitions for number in self.brokers]
            return all(view and all(set(p.isr) == set(p.replicas) for p in view.values()) for view in views)

        eventually(in_sync, seconds, f"all replicas of {topic} are in sync")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(self.tails())
        self.stop()


class HeadraceCluster(ClusterProcess):
    """Brokers of the installed command, and a real ZooKeeper of one server or three."""

    def __init__(
        self,
        directory: Path,
        brokers: int = 3,
        properties: Mapping[str, str] | None = None,
        *,
        places: Sequence[Place] | None = None,
        relayed: bool = False,
        zookeepers: int = 1,
        zookeeper_host: str = "127.0.0.1",
    ) -> None:
        super().__init__(directory, brokers, properties, places=places, relayed=relayed)
        if "listeners" not in self.properties and "inter.broker.listener.name" not in self.properties:
            self.links = SecuredLinks.if_wanted(directory / "certificates")
        self.zookeeper = ZooKeeper(
            directory / "zookeeper", servers=zookeepers, host=zookeeper_host, synced=False
        )

    def prepare(self) -> None:
        self.zookeeper.start()

    def conclude(self) -> None:
        self.zookeeper.stop()

    def make(self, broker_id: int, place: Place) -> BrokerProcess:
        properties = {
            "zookeeper.connect": self.zookeeper.connect,
            # Also where sessions are short: it is not the start that they make a test quick for.
            "zookeeper.connection.timeout.ms": "60000",
            "auto.create.topics.enable": "false",
            **self.properties,
        }
        return HeadraceProcess(self.directory / str(broker_id), properties, broker_id=broker_id, place=place)
