"""Faults that have to come together to do harm, and that chance alone hardly ever brings together.

Each of them is what a rule of replication exists for: a message that is late while the world changes, or a
decision of which somebody does not hear. The details are drawn from the seed, and mostly come to nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from headrace.protocol.messages.alter_partition_request import AlterPartitionRequest
from headrace.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from headrace.testing.simulation.network import SimulatedLink
from tests.simulation.client import TOPIC
from tests.simulation.cluster import SimulatedHost
from tests.simulation.decision_faults import DecisionFaults
from tests.simulation.disk_faults import DiskFaults
from tests.simulation.fault_scene import QUICK, FaultScene
from tests.simulation.network_faults import NetworkFaults


class Cast(NamedTuple):
    """One partition: who leads it, one who follows, and who is the active controller."""

    leader: SimulatedHost
    follower: SimulatedHost
    controller: SimulatedHost
    rest: tuple[SimulatedHost, ...]
    """The other replicas."""


class Coincidences:
    def __init__(
        self, scene: FaultScene, decisions: DecisionFaults, network: NetworkFaults, disks: DiskFaults
    ) -> None:
        self._scene = scene
        self._cluster = scene.cluster
        self._random = scene.random
        self._decisions = decisions
        self._network = network
        self._disks = disks
        self.names: dict[str, Callable[[], str | None]] = {
            "late ISR change": self.late_isr_change,
            "overtaken ISR change": self.overtaken_isr_change,
            "unheard ISR change": self.unheard_isr_change,
            "forgetful follower": self.forgetful_follower,
            "late farewell": self.late_farewell,
            "same leader again": self.same_leader_again,
            "directory lost at a stop": self.directory_lost_at_a_stop,
        }

    def _cast(self, *, apart: bool = False) -> Cast | None:
        """Of a partition whose leader has to ask another broker for what it wants; `apart`: one that has no
        replica of it. None if there is none."""
        controller = self._decisions.controller()
        topic = None if controller is None else controller.metadata.image.topic(TOPIC)
        if controller is None or topic is None:
            return None
        hosts, active = self._cluster.hosts, controller.runtime.broker_id
        fitting = [
            index
            for index in range(len(topic))
            if topic.leader(index) not in (-1, active) and not (apart and active in topic.replicas(index))
        ]
        if not fitting:
            return None
        index = self._random.choice(fitting)
        leader = topic.leader(index)
        replicas = [hosts[each - 1] for each in topic.replicas(index) if each != leader]
        followers = [each for each in replicas if each.is_running]
        if not followers:
            return None
        # One that is the active controller too takes the late messages with it, wherever it goes.
        others = [each for each in followers if each.broker_id != active]
        follower = self._random.choice(others or followers)
        rest = tuple(each for each in replicas if each is not follower)
        return Cast(hosts[leader - 1], follower, hosts[active - 1], rest)

    # --- what is done to whom ---

    def _when_sent(
        self, api_key: int, source: SimulatedHost, spring: Callable[[SimulatedLink], None]
    ) -> None:
        """Once, when that host sends such a request. A later coincidence takes the place of this one."""
        network = self._cluster.network
        names = [host.name for host in self._cluster.hosts]

        def on_sent(link: SimulatedLink, frame: bytes) -> None:
            if link.host != source.name or link.peer_host not in names:
                return
            if int.from_bytes(frame[:2], "big") == api_key:
                network.on_sent = None
                spring(link)

        network.on_sent = on_sent

    def _cut(self, source: SimulatedHost, target: SimulatedHost, span: tuple[float, float]) -> None:
        network = self._cluster.network
        network.cut(source.name, target.name)
        self._scene.later(span, partial(network.heal, source.name, target.name))

    def _lose_power(self, host: SimulatedHost) -> bool:
        if not host.is_running or not self._scene.may_lose_disk(host):
            return False
        host.lose_power()
        self._scene.later(QUICK, host.start)
        return True

    def _bounce(self, host: SimulatedHost) -> None:
        host.kill()
        self._scene.later(QUICK, host.start)

    # --- proposals of leaders ---

    def late_isr_change(self) -> str | None:
        """A follower comes back; the proposal to admit it is late, and meanwhile it is another follower."""
        cast = self._cast()
        if cast is None:
            return None
        strike = self._random.choice((self._lose_power, self._decisions.fence, self._bounce))
        seconds = self._random.uniform(0.3, 1.5)  # not longer, or other changes of the row have it refused

        def spring(link: SimulatedLink) -> None:
            link.up.postpone(seconds)
            self._scene.later((0.0, 0.02), hit)

        def hit() -> None:
            # Whoever can reach the leader has everything again before the proposal arrives.
            self._cut(cast.follower, cast.leader, (seconds, seconds + 1.0))
            strike(cast.follower)

        self._when_sent(AlterPartitionRequest.API_KEY, cast.leader, spring)
        self._decisions.fence(cast.follower)
        what = strike.__name__.strip("_").replace("_", " ")
        return f"{cast.leader.name}'s next ISR change is {seconds:.2f} s late; {what} {cast.follower.name}"

    def overtaken_isr_change(self) -> str | None:
        """A second proposal admits a follower, which falls behind again before the first one arrives."""
        cast = self._cast()
        if cast is None:
            return None
        seconds = self._random.uniform(1.0, 4.0)

        def spring(link: SimulatedLink) -> None:
            self._cluster.network.overtake(link, seconds)
            self._scene.later((0.1, 0.5), fall_behind)

        def fall_behind() -> None:
            self._cut(cast.follower, cast.leader, (seconds, seconds + 1.0))
            self._scene.later((0.1, 0.5), leave)

        def leave() -> None:
            self._decisions.fence(cast.follower)

        self._when_sent(AlterPartitionRequest.API_KEY, cast.leader, spring)
        self._decisions.fence(cast.follower)
        return f"{cast.leader.name}'s next ISR change is overtaken, and comes {seconds:.2f} s late"

    def unheard_isr_change(self) -> str | None:
        """A controller dies as it admits a replica. Its leader does not hear of it, nor it of its leader."""
        cast = self._cast(apart=True)
        if cast is None:
            return None

        def spring(_link: SimulatedLink) -> None:
            self._cut(cast.follower, cast.leader, (0.3, 2.0))
            self._scene.later((0.002, 0.015), die)

        def die() -> None:
            cast.controller.kill()
            self._scene.later((0.5, 3.0), cast.controller.start)

        self._when_sent(AlterPartitionRequest.API_KEY, cast.leader, spring)
        self._decisions.fence(cast.follower)
        return f"{cast.controller.name} dies when {cast.leader.name} asks for {cast.follower.name}"

    # --- followers that are not what they were ---

    def forgetful_follower(self) -> str | None:
        """It loses what it had, and is registered again before its leader hears a word of it."""
        cast = self._cast()
        if cast is None:
            return None
        self._cut(cast.follower, cast.leader, (0.3, 2.5))
        if not self._lose_power(cast.follower):
            return None
        if self._random.random() < 0.5:
            cast.follower.replace_disk()
        return f"{cast.follower.name} forgets, and {cast.leader.name} does not hear of it"

    def same_leader_again(self) -> str | None:
        """A follower alone has what its leader wrote last, and is away until that one leads again."""
        cast = self._cast()
        if cast is None or cast.follower is cast.controller:
            return None
        for other in cast.rest:
            self._cut(other, cast.leader, (0.2, 0.6))
        away = (3.2, 5.0)

        def leave() -> None:
            for other in self._scene.others(cast.follower):
                self._cut(cast.follower, other, away)
                self._cut(other, cast.follower, away)
            self._cluster.cut_ensemble(cast.follower)
            self._scene.later(away, partial(self._network.heal_ensemble_for, cast.follower))
            self._decisions.fence(cast.leader)
            self._scene.later((0.5, 2.5), self._prefer)

        self._scene.later((0.05, 0.3), leave)
        return f"{cast.follower.name} is away while {cast.leader.name} is deposed and comes back"

    def _prefer(self) -> None:
        self._decisions.prefer()

    # --- processes that are not what they were ---

    def late_farewell(self) -> str | None:
        """A broker says that it stops, is killed for want of patience, and is back before it is heard."""
        controller = self._decisions.controller()
        host = self._scene.victim()
        if controller is None or host is None or host.broker_id == controller.runtime.broker_id:
            return None
        if host.process is None or not host.process.is_ready:
            return None
        seconds = self._random.uniform(0.5, 3.0)

        def spring(link: SimulatedLink) -> None:
            link.up.postpone(seconds)
            self._scene.later((0.01, 0.2), partial(self._bounce, host))

        self._when_sent(BrokerHeartbeatRequest.API_KEY, host, spring)
        host.stop()
        return f"{host.name} stops, and is heard {seconds:.2f} s later"

    def directory_lost_at_a_stop(self) -> str | None:
        """A broker stops cleanly, and one of its disks is not there any more when it starts again."""
        host = self._scene.victim()
        if host is None or host.process is None or not host.process.is_ready:
            return None
        if not self._scene.may_lose_disk(host) or len(self._cluster.directories) < 2:
            return None
        for other in self._random.sample(self._scene.others(host), k=1):
            other.kill()
            self._scene.later((2.0, 5.0), other.start)
        host.before_start = partial(self._disks.lose_directory, host)
        self._scene.later((0.0, 0.5), host.stop)
        return f"{host.name} stops, and loses a directory"
