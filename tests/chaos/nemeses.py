"""What is done to a cluster. Each nemesis begins, says what it did, and ends.

All chance comes from one seed. What is chosen may depend on what the cluster says (who leads), so a seed
repeats the plan of a run, not its every millisecond.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import ClassVar

from tests.chaos.file_damage import FileDamage
from tests.chaos.nemesis import Nemesis
from tests.chaos.network import OUTSIDE
from tests.chaos.relay import Weather
from tests.chaos.testbed import Testbed


class Kill(Nemesis):
    name, domain = "kill -9", "process"

    def begin(self) -> str:
        victims = self.victims()
        for number in victims:
            self.bed.cluster.kill(number)
        return f"kill -9 of brokers {victims}"

    def end(self) -> None:
        self.bed.restart_ended()


class Terminate(Nemesis):
    name, domain = "SIGTERM", "process"
    asked = 0

    def begin(self) -> str:
        self.asked = self.victim()
        if self.bed.cluster.brokers[self.asked].running:
            self.bed.cluster.terminate(self.asked)
        return f"SIGTERM to broker {self.asked}"

    def end(self) -> None:
        # One that is cut off cannot hand over, and may take long: an operator would end it.
        self.bed.cluster.kill(self.asked)
        self.bed.restart_ended()


class Pause(Nemesis):
    name, domain = "SIGSTOP", "process"

    def begin(self) -> str:
        victims = [n for n in self.victims() if self.bed.cluster.brokers[n].running]
        for number in victims:
            self.bed.cluster.pause(number)
        return f"SIGSTOP to brokers {victims}"

    def end(self) -> None:
        for number in list(self.bed.cluster.paused):
            self.bed.cluster.resume(number)


class Cut(Nemesis):
    """A cut between hosts, of some shape."""

    name, domain = "cut", "network"

    @classmethod
    def possible(cls, bed: Testbed) -> bool:
        return bed.network is not None

    def begin(self) -> str:
        network, victim = self.bed.network, self.victim()
        assert network is not None
        others = [number for number in self.bed.numbers if number != victim]
        shapes = ["from the other brokers", "silent", "one way out", "one way in", "bridge", "from clients"]
        if len(self.bed.numbers) > 3:
            shapes.append("ring")
        if self.bed.target == "headrace":
            shapes.append("from ZooKeeper")
        match shape := self.random.choice(shapes):
            case "from the other brokers":
                network.cut([victim], others)
            case "silent":
                network.silence(victim)
            case "one way out":
                network.block(victim, self.random.choice(others))
            case "one way in":
                network.block(self.random.choice(others), victim)
            case "bridge":
                network.bridge(victim)
            case "ring":
                network.ring()
            case "from clients":
                network.cut([victim], [OUTSIDE])
            case "from ZooKeeper":
                network.forbid_ports(victim, self.bed.zookeeper_ports)
        return f"cut, {shape}, broker {victim}"

    def end(self) -> None:
        assert self.bed.network is not None
        self.bed.network.heal()


class PacketLoss(Cut):
    name = "packet loss"

    def begin(self) -> str:
        network, percent = self.bed.network, self.random.choice((2, 10, 40))
        assert network is not None
        victims = self.victims()
        for number in victims:
            network.lose(number, percent)
        return f"{percent} % of the packets to brokers {victims} lost"


class BadWeather(Nemesis):
    """Delay, stalls, resets and a throttle on the way to a broker."""

    name, domain = "bad weather", "relay"
    KINDS: ClassVar[Sequence[Weather]] = (
        Weather(delay_ms=20, jitter_ms=30),
        Weather(delay_ms=200, jitter_ms=400),
        Weather(stalled=True),
        Weather(resets=0.02),
        Weather(resets=0.2),
        Weather(refusing=True),
        Weather(bytes_per_second=20_000),
    )

    @classmethod
    def possible(cls, bed: Testbed) -> bool:
        return bool(bed.cluster.relays)

    def begin(self) -> str:
        weather, victims = self.random.choice(self.KINDS), self.victims()
        for number in victims:
            self.bed.cluster.relays[number].set(weather)
        changed = {k: v for k, v in vars(weather).items() if v != getattr(Weather(), k)}
        return f"on the way to brokers {victims}: {changed}"

    def end(self) -> None:
        for relay in self.bed.cluster.relays.values():
            relay.set(Weather())


class ClockJump(Nemesis):
    name, domain = "clock", "clock"

    @classmethod
    def possible(cls, bed: Testbed) -> bool:
        return bool(bed.faults)

    def begin(self) -> str:
        victims = self.victims()
        offset = self.random.choice((-86_400.0, -30.0, -0.5, 0.5, 30.0, 86_400.0))
        for number in victims:
            self.bed.faults[number].set_clock(offset)
        return f"the clocks of brokers {victims} jump by {offset:+g} s"

    def end(self) -> None:
        for faults in self.bed.faults.values():
            faults.set_clock(0)


class Disk(Nemesis):
    name, domain = "disk", "disk"
    failed = 0

    @classmethod
    def possible(cls, bed: Testbed) -> bool:
        return bool(bed.faults)

    def begin(self) -> str:
        # Where files were damaged nothing else may be lost: the others are those that are whole.
        victim = self.bed.damaged or self.victim()
        if self.random.random() < 0.5:
            self.bed.faults[victim].slow_disk(0.2)
            return f"the disk of broker {victim} is slow"
        self.failed = victim
        return f"the disk of broker {victim} is {self.bed.fail_disk(victim)}"

    def end(self) -> None:
        for faults in self.bed.faults.values():
            faults.heal_disk()
        for disk in self.bed.disks.values():
            disk.free()
        if self.failed:
            # It has ended by itself, or will not touch the directory again before it is restarted.
            self.bed.cluster.kill(self.failed)
            self.bed.restart_ended()


class ZooKeeperFault(Nemesis):
    name, domain = "zookeeper", "zookeeper"

    @classmethod
    def possible(cls, bed: Testbed) -> bool:
        return bed.target == "headrace"

    def begin(self) -> str:
        nodes = self.bed.zookeeper.zookeeper.nodes
        count = self.random.choice((1, 1, len(nodes) // 2 + 1, len(nodes)))
        chosen = sorted(self.random.sample(range(len(nodes)), min(count, len(nodes))))
        how = self.random.choice(("kill", "pause"))
        for index in chosen:
            if how == "kill":
                nodes[index].kill()
            else:
                nodes[index].pause()
            self.bed.unhealthy_zookeepers.add(index)
        return f"{how} of ZooKeeper servers {[index + 1 for index in chosen]} of {len(nodes)}"

    def end(self) -> None:
        self.bed.heal_zookeeper()


ALL: Sequence[type[Nemesis]] = (
    Kill,
    Terminate,
    Pause,
    Cut,
    PacketLoss,
    BadWeather,
    ClockJump,
    Disk,
    FileDamage,
    ZooKeeperFault,
)


def choose(bed: Testbed, source: random.Random, names: Sequence[str] = ()) -> list[Nemesis]:
    """A random subset, a quarter of the time empty, and never two of one domain."""
    if source.random() < 0.25:
        return []
    usable = [kind for kind in ALL if kind.possible(bed) and (not names or kind.name in names)]
    source.shuffle(usable)
    chosen: dict[str, Nemesis] = {}
    for kind in usable[: source.choice((1, 1, 2, 3))]:
        chosen.setdefault(kind.domain, kind(bed, source))
    return list(chosen.values())
