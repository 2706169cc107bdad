"""What happens to brokers and store. Each strike has mended everything when it returns."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator

from tests.cluster.tier_fire.clients import PARTITIONS, PLAIN
from tests.cluster.tier_fire.field import PATIENCE_SECONDS, Field
from tests.cluster.tier_fire.ledger import Ledger
from tests.cluster.tiered_store import silent
from tests.cluster_process import eventually
from tests.store_proxy import Fate, Request, StoreProxy


class Strikes:
    def __init__(self, field: Field, ledger: Ledger, chance: random.Random, outage_seconds: float) -> None:
        self._field = field
        self._ledger = ledger
        self._chance = chance
        self._outage_seconds = outage_seconds
        self.counts: dict[str, int] = {}
        self.outages: list[tuple[float, float, int]] = []
        """When a store was away, and how much was acknowledged meanwhile."""
        self.refused = 0
        """Writes of manifests by brokers that did not lead any more."""
        self.all: dict[str, Callable[[], None]] = {
            "kill -9 of a leader": self._kill_leader,
            "kill -9 of a follower": self._kill_follower,
            "kill -9 of the store": self._kill_store,
            "a store that is down": self._store_down,
            "a store that is silent": self._store_silent,
            "a zombie's manifest on its way": self._zombie_held,
            "a zombie between upload and manifest": self._zombie_stopped,
            "a store that loses answers": self._lost_answers,
            "a store that refuses now and then": self._refusals,
            "a leader killed while the store is down": self._kill_leader_without_store,
        }

    def order(self) -> Iterator[str]:
        """Each equally often."""
        while True:
            yield from self._chance.sample(list(self.all), len(self.all))

    def strike(self, name: str) -> None:
        self.all[name]()
        self.counts[name] = self.counts.get(name, 0) + 1
        for number, broker in self._field.cluster.brokers.items():
            if not broker.running:
                self._ledger.accuse(f"broker {number} ended by itself:\n{broker.tail()[-2000:]}")
                self._field.cluster.restart(number)
        self._field.wait_in_sync()

    def _partition(self) -> int:
        return self._chance.randrange(PARTITIONS[PLAIN])

    def _leader(self, partition: int) -> int:
        found = [-1]

        def known() -> bool:
            found[0] = self._field.cluster.leader(PLAIN, partition)
            return found[0] > 0

        eventually(known, PATIENCE_SECONDS, f"partition {partition} has a leader")
        return found[0]

    def _kill(self, number: int) -> None:
        self._field.cluster.kill(number)
        time.sleep(self._chance.uniform(0, 10))
        self._field.cluster.restart(number)

    def _kill_leader(self) -> None:
        self._kill(self._leader(self._partition()))

    def _kill_follower(self) -> None:
        leader = self._leader(self._partition())
        self._kill(self._chance.choice([n for n in self._field.numbers if n != leader]))

    def _kill_store(self) -> None:
        self._field.store.stop()
        time.sleep(self._chance.uniform(0, 5))
        self._field.store.start()

    @contextlib.contextmanager
    def _outage(self) -> Iterator[None]:
        begun, before = time.monotonic(), self._ledger.acknowledged
        yield
        acknowledged = self._ledger.acknowledged - before
        self.outages.append((begun, time.monotonic(), acknowledged))
        if not acknowledged:
            self._ledger.accuse("nothing was acknowledged while the store was away")

    def _store_down(self) -> None:
        self._field.store.stop()
        with self._outage():
            time.sleep(self._outage_seconds * self._chance.uniform(0.5, 1.5))
        self._field.store.start()

    def _store_silent(self) -> None:
        with silent(self._field.store), self._outage():
            time.sleep(self._outage_seconds * self._chance.uniform(0.5, 1.5))

    def _kill_leader_without_store(self) -> None:
        self._field.store.stop()
        self._kill(self._leader(self._partition()))
        self._field.wait_in_sync()
        self._field.store.start()

    @contextlib.contextmanager
    def _everywhere(self, rule: Callable[[Request], Fate | None]) -> Iterator[None]:
        for proxy in self._field.proxies.values():
            proxy.rule = rule
        try:
            yield
        finally:
            for proxy in self._field.proxies.values():
                proxy.rule = None

    def _lost_answers(self) -> None:
        def rule(request: Request) -> Fate | None:
            return Fate(lose_answer=True) if self._chance.random() < 0.5 else None

        with self._everywhere(rule):
            time.sleep(20)

    def _refusals(self) -> None:
        def rule(request: Request) -> Fate | None:
            drawn = self._chance.random()
            return Fate(answer=self._chance.choice([429, 500, 503])) if drawn < 0.7 else None

        with self._everywhere(rule):
            time.sleep(20)

    # --- a leader that is stopped with a write under way ------------------------------------------------

    def _zombie_held(self) -> None:
        """Its conditional write reaches the store after its successor's."""
        self._zombie(lambda request: request.is_manifest, hold=True)

    def _zombie_stopped(self) -> None:
        """Its segment is there, and it writes the manifest when it wakes."""
        self._zombie(lambda request: request.is_records, hold=False)

    def _zombie(self, at: Callable[[Request], bool], *, hold: bool) -> None:
        partition = self._partition()
        leader, folder = self._leader(partition), self._field.folder_of(partition)
        stopped, go_on = threading.Event(), threading.Event()

        def stop() -> None:
            self._field.cluster.pause(leader)
            stopped.set()

        def rule(request: Request) -> Fate | None:
            if request.method != "PUT" or folder not in request.path or not at(request) or stopped.is_set():
                return None
            if hold:
                stop()
                return Fate(wait_for=go_on)
            return Fate(before_answer=lambda _: stop())

        proxy = self._field.proxies[leader]
        proxy.rule = rule
        try:
            if not stopped.wait(90):
                return  # another one leads by now, or there is nothing to upload
            self._await_successor(leader, partition, folder)
            before = len(proxy.seen)
            go_on.set()
            if hold:
                eventually(lambda: _manifests(proxy, folder, before), 60, "the held write has arrived")
            self._field.cluster.resume(leader)
            self._field.wait_in_sync()
            self._judge(_manifests(proxy, folder, before)[:1], hold=hold)
        finally:
            go_on.set()
            proxy.rule = None
            self._field.cluster.resume(leader)

    def _await_successor(self, leader: int, partition: int, folder: str) -> None:
        others = [proxy for number, proxy in self._field.proxies.items() if number != leader]
        before = {proxy.port: len(proxy.seen) for proxy in others}

        def written() -> bool:
            return any(200 in _manifests(proxy, folder, before[proxy.port]) for proxy in others)

        eventually(written, PATIENCE_SECONDS, f"partition {partition} has a successor that wrote")

    def _judge(self, statuses: list[int], *, hold: bool) -> None:
        if statuses == [412]:
            self.refused += 1
        elif statuses or hold:
            self._ledger.accuse(f"the manifest of a zombie was answered with {statuses}")


def _manifests(proxy: StoreProxy, folder: str, since: int) -> list[int]:
    """How writes of this manifest were answered."""
    return [
        status
        for method, path, status in proxy.seen[since:]
        if method == "PUT" and folder in path and path.partition("?")[0].endswith("/manifest")
    ]
