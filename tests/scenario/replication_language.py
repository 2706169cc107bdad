"""The language of the replication scenarios: one step a line, `#` begins a comment.

    without SAFEGUARD              the scenario must end in a violation if that safeguard is switched off
    min isr N                      min.insync.replicas; before the first step
    flush messages N               flush.messages; before the first step

    1 leads epoch 3 isr 1 2        the controller commits that row, and every running broker hears of it
    1 leads epoch 3 isr 1 2 to 2   only broker 2 hears of it
    isr 1 2                        the controller shrinks or extends the ISR by itself; all hear of it
    isr 1 2 to 1
    hear 2 3                       these brokers catch up with the committed row

    append 1 a b                   a producer writes to broker 1, a record each
    append 1 a acks all            ... and waits for all replicas
    delete 1 3                     DeleteRecords: everything before offset 3
    fetch 2 3                      broker 2 asks its leader and applies the answer; then broker 3
    fetch 2 is TRUNCATING           ... with this outcome; WAITS if it has nothing to ask now
    ask 2 f                        broker 2 sends a fetch, called f
    serve f                        its leader answers it, now
    answer f                       the answer arrives; also a second time

    look 1                         the leader looks at its followers and proposes an ISR, or not
    propose 1 p                    the same, and the proposal is called p
    grant p                        the controller commits it; nobody has heard of it yet
    grant p or end                 ... if it does not, the scenario ends here; `or next`: it goes on
    lose p                         the leader never learns what became of it
    refuse p                       the leader is told no, for good

    kill 1                         the process dies; the host keeps what it wrote
    power loss 1 2                 both hosts lose what was not synced
    start 1                        a new process, which the controller has not registered yet
    register 1                     ... and now it has
    fence 3                        the controller admits broker 3 to no ISR until it is registered again
    sync 1                         everything that broker 1 has written is on its disk, and noted there
    swap 1 x y                     while it is down: its file becomes that of another log
    wait 31                        seconds pass
    latest 1                       a consumer asks broker 1 where the end is

    expect log 1 = a b             expect hw 1 = 2         expect latest 1 = unknown
    expect isr = 1 2               expect p = 1 2 3        expect no proposal 1
    expect acked a                 expect not acked a      expect refused append 1 a: NotEnoughReplicas
    expect role 1 = IDLE           expect epoch 1 = 3

With a safeguard switched off the world is another one: expectations are skipped then, and only a violation of
what must never happen counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Final

from headrace.core.errors import HeadraceError
from headrace.replication.assignment import IsrProposal
from headrace.replication.partition import ACKS_ALL
from headrace.replication.safeguards import ALL_ON, Safeguards
from tests.scenario.replication_world import Broker, Exchange, Violation, World

SAFEGUARDS: Final = tuple(field.name for field in fields(Safeguards))


class _End(Exception):
    """The text has nothing more to say in this world."""


class Scenario:
    def __init__(self, text: str) -> None:
        self.without: list[str] = []
        self._settings = {"min isr": 1, "flush messages": 1 << 62}
        self._steps: list[tuple[int, list[str]]] = []
        for number, line in enumerate(text.splitlines(), 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            if words[0] == "without":
                assert words[1] in SAFEGUARDS, words[1]
                self.without.append(words[1])
            elif " ".join(words[:2]) in self._settings:
                self._settings[" ".join(words[:2])] = int(words[2])
            else:
                self._steps.append((number, words))

    def run(self, safeguards: Safeguards = ALL_ON) -> None:
        """Raises Violation, or AssertionError with the line whose expectation did not hold."""
        world = World(
            safeguards,
            min_isr=self._settings["min isr"],
            flush_messages=self._settings["flush messages"],
        )
        play = _Play(world, lenient=safeguards != ALL_ON)
        for number, words in self._steps:
            try:
                play.step(words)
                world.check()
            except _End:
                return
            except Violation as violation:
                raise Violation(f"line {number}: {' '.join(words)}: {violation}") from None
            except (AssertionError, HeadraceError) as error:
                raise AssertionError(f"line {number}: {' '.join(words)}: {error!r}") from error

    def run_without(self, safeguard: str) -> None:
        self.run(replace(ALL_ON, **{safeguard: False}))


def _numbers(words: list[str]) -> tuple[int, ...]:
    return tuple(int(word) for word in words)


def _split(words: list[str], at: str) -> tuple[list[str], list[str]]:
    if at not in words:
        return words, []
    place = words.index(at)
    return words[:place], words[place + 1 :]


class _Play:
    def __init__(self, world: World, lenient: bool) -> None:
        self._world = world
        self._lenient = lenient
        self._fetches: dict[str, Exchange | None] = {}
        self._proposals: dict[str, tuple[int, IsrProposal | None]] = {}
        self._verbs: dict[str, Callable[[list[str]], None]] = {
            "isr": self._isr,
            "hear": lambda words: world.hear(_numbers(words)),
            "append": self._append,
            "delete": self._delete,
            "fetch": self._fetch,
            "ask": self._ask,
            "serve": self._serve,
            "answer": self._answer,
            "look": lambda words: self._propose([*words, "_"]),
            "propose": self._propose,
            "grant": self._grant,
            "lose": lambda words: self._settle(words[0], definite=False),
            "refuse": lambda words: self._settle(words[0], definite=True),
            "kill": lambda words: self._each(words, Broker.kill),
            "power": lambda words: self._each(words[1:], Broker.lose_power),
            "swap": lambda words: world.brokers[int(words[0])].swap(words[1:]),
            "start": lambda words: self._each(words, Broker.start),
            "register": self._register,
            "fence": self._fence,
            "sync": self._sync,
            "wait": self._wait,
            "latest": self._latest,
            "expect": self._expect,
        }

    def step(self, words: list[str]) -> None:
        if words[0].isdigit():
            self._elect(words)
        else:
            assert words[0] in self._verbs, f"no such step: {words[0]}"
            self._verbs[words[0]](words[1:])

    def _each(self, words: list[str], act: Callable[[Broker], None]) -> None:
        for broker_id in _numbers(words):
            act(self._world.brokers[broker_id])

    def _latest(self, words: list[str]) -> None:
        self._world.ask_latest(int(words[0]))

    # --- the controller -----------------------------------------------------------------------------------

    def _elect(self, words: list[str]) -> None:
        leader, leads, epoch, number, isr, *rest = words
        assert (leads, epoch, isr) == ("leads", "epoch", "isr"), "N leads epoch N isr N ..."
        members, hearers = _split(rest, "to")
        self._world.elect(int(leader), int(number), _numbers(members))
        self._world.hear(_numbers(hearers) or (1, 2, 3))

    def _isr(self, words: list[str]) -> None:
        members, hearers = _split(words, "to")
        self._world.change_isr(_numbers(members))
        self._world.hear(_numbers(hearers) or (1, 2, 3))

    def _register(self, words: list[str]) -> None:
        for broker_id in _numbers(words):
            self._world.registered[broker_id] = self._world.brokers[broker_id].broker_epoch

    def _fence(self, words: list[str]) -> None:
        for broker_id in _numbers(words):
            del self._world.registered[broker_id]

    def _propose(self, words: list[str]) -> None:
        leader = int(words[0])
        self._proposals[words[1]] = (leader, self._world.look(leader))

    def _grant(self, words: list[str]) -> None:
        proposal = self._proposals[words[0]][1]
        if proposal is not None and self._world.grant(proposal):
            return
        if words[1:] == ["or", "end"]:
            raise _End
        assert words[1:] == ["or", "next"] or self._lenient, "the controller would refuse it"

    def _delete(self, words: list[str]) -> None:
        self._world.brokers[int(words[0])].partition.delete_records_before(int(words[1]))

    def _settle(self, name: str, *, definite: bool) -> None:
        leader, proposal = self._proposals[name]
        if proposal is not None:
            self._world.brokers[leader].partition.proposal_failed(proposal, definite=definite)

    # --- data -----------------------------------------------------------------------------------------------

    def _append(self, words: list[str]) -> None:
        values, acks = _split(words[1:], "acks")
        for value in values:
            self._world.append(int(words[0]), value, ACKS_ALL if acks == ["all"] else 1)

    def _fetch(self, words: list[str]) -> None:
        replicas, expected = _split(words, "is")
        for replica in _numbers(replicas):
            exchange = self._world.ask(replica)
            outcome = "WAITS" if exchange is None else self._world.apply(self._world.serve(exchange))
            assert self._lenient or not expected or expected == [outcome], f"it was {outcome}"

    def _ask(self, words: list[str]) -> None:
        self._fetches[words[1]] = self._world.ask(int(words[0]))

    def _serve(self, words: list[str]) -> None:
        exchange = self._fetches[words[0]]
        self._fetches[words[0]] = None if exchange is None else self._world.serve(exchange)

    def _answer(self, words: list[str]) -> None:
        fetch, expected = _split(words, "is")
        exchange = self._fetches[fetch[0]]
        outcome = "WAITS" if exchange is None else self._world.apply(exchange)
        assert self._lenient or not expected or expected == [outcome], f"it was {outcome}"

    def _sync(self, words: list[str]) -> None:
        for broker_id in _numbers(words):
            self._world.brokers[broker_id].sync()

    def _wait(self, words: list[str]) -> None:
        self._world.now += float(words[0])

    # --- expectations -------------------------------------------------------------------------------------

    def _expect(self, words: list[str]) -> None:
        if self._lenient:
            return
        world = self._world
        if words[0] == "refused":
            self._expect_refusal(words[1:])
            return
        if words[0] in ("acked", "not"):
            wanted = words[0] == "acked"
            for value in words[1:] if wanted else words[2:]:
                said = world.acknowledged.get(value)
                assert (said == "ok") == wanted, f"{value}: {said}"
            return
        if words[:2] == ["no", "proposal"]:
            assert world.look(int(words[2])) is None, "it would like another ISR"
            return
        subject, wanted_words = _split(words, "=")
        found = self._found(subject)
        assert found == wanted_words, f"it is {' '.join(found)}"

    def _expect_refusal(self, words: list[str]) -> None:
        action, refusal = " ".join(words).split(": ")
        found = "not refused"
        try:
            self.step(action.split())
        except HeadraceError as error:
            found = type(error).__name__
        assert found == refusal, f"it was {found}"

    def _found(self, subject: list[str]) -> list[str]:
        world = self._world
        if subject == ["isr"]:
            return [str(member) for member in world.row.isr]
        if len(subject) == 1:
            proposal = self._proposals[subject[0]][1]
            return ["nothing"] if proposal is None else [str(member) for member in proposal.isr]
        what, broker = subject[0], world.brokers[int(subject[1])]
        if what == "log":
            return list(broker.values().values())
        if what == "hw":
            return [str(broker.partition.high_watermark)]
        if what == "role":
            return [broker.partition.role.name]
        if what == "epoch":
            return [str(broker.partition.leader_epoch)]
        assert what == "latest", f"nothing is known of {what}"
        latest = world.ask_latest(broker.broker_id)
        return ["unknown" if latest is None else str(latest)]
