"""Random walks through the world of the scenarios: elections, late and repeated messages, restarts, losses.

The controller decides as a controller may: it elects members of the ISR, or those who left it while it was
below its minimum; who lost its power is in neither. Everything else comes in any order. Leader changes, late
messages and restarts are favoured: a uniform walk hardly meets the cases that matter.
"""

from __future__ import annotations

from random import Random

from headrace.core.errors import HeadraceError
from headrace.replication.assignment import IsrProposal
from headrace.replication.partition import ACKS_ALL
from headrace.replication.safeguards import ALL_ON, Safeguards
from tests.scenario.replication_world import Broker, Exchange, World

MIN_ISR = 2
POOL = 6
"""So many messages may be late at the same time."""


class Walk:
    def __init__(self, seed: int, safeguards: Safeguards = ALL_ON) -> None:
        self._random = Random(seed)
        self.world = World(safeguards, min_isr=self._random.choice((1, MIN_ISR)))
        self.trace: list[str] = []
        self._eligible: dict[int, None] = {}
        """Who left the ISR while it was below its minimum, and has everything that was committed."""
        self._lossy: dict[int, None] = {}
        """Who has lost its power since the controller last registered it."""
        self._fetches: list[Exchange] = []
        self._proposals: list[tuple[int, IsrProposal]] = []
        self._written = 0
        self._steps = (
            (self._append, 8),
            (self._fetch, 16),
            (self._ask, 5),
            (self._serve, 5),
            (self._answer, 5),
            (self._hear, 8),
            (self._elect, 3),
            (self._propose, 5),
            (self._decide, 5),
            (self._lose_answer, 2),
            (self._kill, 1),
            (self._lose_power, 1),
            (self._start, 4),
            (self._fence, 1),
            (self._wait, 1),
            (self._rest, 3),
        )

    def go(self, steps: int) -> None:
        """Raises Violation."""
        world, random = self.world, self._random
        verbs = [verb for verb, _ in self._steps]
        weights = [weight for _, weight in self._steps]
        world.elect(1, 1, (1, 2, 3))
        world.hear((1, 2, 3))
        for verb in random.choices(verbs, weights, k=steps):
            try:
                verb()
            except HeadraceError as error:
                self._note(f"refused: {error!r}")
            world.check()

    def _note(self, what: str) -> None:
        self.trace.append(what)

    def _any(self, *, running: bool = True) -> Broker | None:
        found = [each for each in self.world.brokers.values() if each.is_running == running]
        return self._random.choice(found) if found else None

    # --- the controller -----------------------------------------------------------------------------------

    def _elect(self) -> None:
        candidates = [each for each in self.world.row.isr if self._may_lead(each)]
        if candidates:
            self._commit(self._random.choice(candidates), self.world.row.isr)

    def _may_lead(self, broker_id: int) -> bool:
        broker = self.world.brokers[broker_id]
        return self.world.registered.get(broker_id) == broker.broker_epoch and broker_id not in self._lossy

    def _commit(self, leader: int, isr: tuple[int, ...]) -> None:
        world = self.world
        for gone in world.row.isr:
            if gone not in isr and gone not in self._lossy:
                self._eligible[gone] = None
        self._eligible = {
            each: None for each in self._eligible if each not in isr and len(isr) < min(world.min_isr, 3)
        }
        if leader == world.row.leader and isr != world.row.isr:
            world.change_isr(isr)
        else:
            world.elect(leader, world.row.leader_epoch + 1, isr)
        self._note(f"row: {world.row}, eligible {list(self._eligible)}")

    def _drop(self, broker_id: int) -> None:
        """Take a broker out of the ISR, if somebody is left who can lead."""
        row = self.world.row
        rest = tuple(each for each in row.isr if each != broker_id)
        leaders = [each for each in rest if self._may_lead(each)]
        if not leaders:
            leaders = [each for each in self._eligible if each != broker_id and self._may_lead(each)]
            rest = (leaders[0], *rest) if leaders else rest
        if leaders:
            leader = row.leader if row.leader in leaders else self._random.choice(leaders)
            self._commit(leader, rest if leader in rest else (leader, *rest))

    def _fence(self) -> None:
        broker_id = self._random.choice((1, 2, 3))
        self._note(f"fence {broker_id}")
        if broker_id in self.world.row.isr:
            self._drop(broker_id)

    def _hear(self) -> None:
        broker = self._any()
        if broker is not None:
            self._note(f"hear {broker.broker_id}")
            self.world.hear((broker.broker_id,))

    def _propose(self) -> None:
        leaders = [
            each for each in self.world.brokers.values() if each.is_running and each.partition.is_leader
        ]
        if leaders:
            leader = self._random.choice(leaders)
            proposal = self.world.look(leader.broker_id)
            if proposal is not None:
                self._note(f"{leader.broker_id} proposes {proposal}")
                self._proposals.append((leader.broker_id, proposal))

    def _decide(self) -> None:
        """The controller gets a proposal, sooner or later. Its answer, if it is a refusal, may arrive."""
        if not self._proposals:
            return
        leader, proposal = self._proposals.pop(self._random.randrange(len(self._proposals)))
        world = self.world
        row = world.row
        lossless = not any(each in self._lossy for each in proposal.isr if each not in row.isr)
        if row.leader == leader and lossless and world.grant(proposal):
            world.row = row
            self._commit(leader, proposal.isr)
        elif self._random.random() < 0.5:
            self._note(f"refused to {leader}: {proposal}")
            world.brokers[leader].partition.proposal_failed(proposal, definite=True)

    def _lose_answer(self) -> None:
        """The leader gives up waiting; the proposal may still be on its way."""
        if self._proposals:
            leader, proposal = self._random.choice(self._proposals)
            self._note(f"{leader} does not know: {proposal}")
            self.world.brokers[leader].partition.proposal_failed(proposal, definite=False)

    # --- processes ------------------------------------------------------------------------------------------

    def _kill(self) -> None:
        broker = self._any()
        if broker is not None:
            self._note(f"kill {broker.broker_id}")
            broker.kill()

    def _lose_power(self) -> None:
        """Only of somebody who is not the last to hold everything: that no replication survives."""
        broker = self._any()
        if broker is None:
            return
        others = [
            each
            for each in (*self.world.row.isr, *self._eligible)
            if each != broker.broker_id and each not in self._lossy
        ]
        if others:
            self._note(f"power loss {broker.broker_id}")
            broker.lose_power()
            self._lossy[broker.broker_id] = None
            self._eligible.pop(broker.broker_id, None)

    def _start(self) -> None:
        """A new process. The controller registers it at once, or finds the old one in its books a while."""
        broker = self._any(running=False)
        if broker is None:
            return
        broker.start()
        self._note(f"start {broker.broker_id} as {broker.broker_epoch}")
        if self._random.random() < 0.3:
            self.world.hear((broker.broker_id,))
        if broker.broker_id in self._lossy and broker.broker_id in self.world.row.isr:
            self._drop(broker.broker_id)
            if broker.broker_id in self.world.row.isr:
                broker.is_running = False
                return
        self._lossy.pop(broker.broker_id, None)
        self.world.registered[broker.broker_id] = broker.broker_epoch
        if self.world.row.leader == broker.broker_id:
            self._elect()

    def _rest(self) -> None:
        """A quiet moment: everybody hears of the row and copies, and who may join the ISR does."""
        for broker_id in (1, 2, 3):
            if not self.world.brokers[broker_id].is_running:
                self._start()
        self.world.hear((1, 2, 3))
        self._append()
        for _ in range(3):
            for broker_id in (1, 2, 3):
                exchange = self.world.ask(broker_id)
                if exchange is not None:
                    self.world.apply(self.world.serve(exchange))
        self._propose()
        self._decide()
        self.world.hear((1, 2, 3))

    def _wait(self) -> None:
        self.world.now += self._random.choice((1.0, 16.0))

    # --- data -----------------------------------------------------------------------------------------------

    def _append(self) -> None:
        leaders = [
            each for each in self.world.brokers.values() if each.is_running and each.partition.is_leader
        ]
        if leaders:
            leader = self._random.choice(leaders).broker_id
            self._written += 1
            self._note(f"append {leader} v{self._written}")
            self.world.append(leader, f"v{self._written}", self._random.choice((1, ACKS_ALL)))

    def _fetch(self) -> None:
        broker = self._any()
        exchange = None if broker is None else self.world.ask(broker.broker_id)
        if exchange is not None:
            outcome = self.world.apply(self.world.serve(exchange))
            self._note(f"fetch {exchange.replica_id} of {exchange.leader_id}: {exchange.sent} {outcome}")

    def _ask(self) -> None:
        broker = self._any()
        exchange = None if broker is None else self.world.ask(broker.broker_id)
        if exchange is not None:
            self._note(f"ask {exchange}")
            self._fetches = [*self._fetches, exchange][-POOL:]

    def _serve(self) -> None:
        """A fetch arrives, perhaps late, perhaps again: then its sender has not had an answer."""
        if self._fetches:
            place = self._random.randrange(len(self._fetches))
            self._fetches[place] = self.world.serve(self._fetches[place])
            self._note(f"serve {self._fetches[place][:4]}")

    def _answer(self) -> None:
        """An answer arrives at the process that asked, perhaps for the second time."""
        answered = [each for each in self._fetches if each.answer is not None]
        if answered:
            exchange = self._random.choice(answered)
            if self.world.brokers[exchange.replica_id].broker_epoch == exchange.broker_epoch:
                outcome = self.world.apply(exchange)
                self._note(f"answer {exchange.replica_id}: {exchange.sent} {outcome}")
