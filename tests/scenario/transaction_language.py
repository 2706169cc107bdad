"""The language of the transaction scenarios: one step a line, `#` begins a comment.

    remembers                      the scenario needs what a coordinator knows from memory: no failovers

    p starts                       a process takes over the transactional id; it is called p
    p starts timeout 30            ... with transactions of 30 s at most
    p starts two phase             ... that never time out
    p starts two phase keeping     ... and an open transaction is kept for it to end
    p goes on                      it asks for its next epoch, naming what it has
    q is p                         q has the identity that p has now: a second process, or a late request

    p adds a-0                     AddPartitionsToTxn, as older clients do it
    p sends a-0 x y                records to partition a-0, each in a batch
    p asks a-0                     a batch to it waits for the coordinator's answer
    p is told a-0                  ... which comes now, and stays true or not
    p commits    p aborts          EndTxn 5: the answer is p's next epoch
    p commits old                  EndTxn 4: p keeps its epoch
    p misses commits               EndTxn 5, whose answer is lost: p keeps the epoch that it had

    markers                        every marker that is due is written, and the transaction completed
    markers a-0                    only there; nothing is completed yet
    failover                       another broker takes over: it reads the log, and begins the markers again
    wait 61                        seconds pass, and the coordinator looks at the time
    marker a-0 of p commits epoch 3    somebody writes a marker by hand, with that coordinator epoch

    expect refused p commits: ProducerFenced
    expect a-0 = x y               what a reader of committed records has got, and gets no further
    expect a-0 = x ...             ... and more is there that is not decided
    expect state = Ongoing
    expect p = q                   they have the same identity

Partitions take batches as real ones do: the coordinator is asked before the first of a transaction.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.core import errors
from headrace.core.errors import HeadraceError
from headrace.transactions.transaction import FOREVER_MS, Producer
from tests.scenario.transaction_world import World

_OLD = "old"


class Scenario:
    def __init__(self, text: str) -> None:
        self.remembers = False
        self._steps: list[tuple[int, list[str]]] = []
        for number, line in enumerate(text.splitlines(), 1):
            words = line.partition("#")[0].split()
            if words == ["remembers"]:
                self.remembers = True
            elif words:
                self._steps.append((number, words))

    def run(self, *, fails_over: bool = False) -> None:
        """With `fails_over` the coordinator is killed after every step; all must come out the same."""
        world = World()
        play = _Play(world)
        for number, words in self._steps:
            try:
                play.step(words)
                if fails_over:
                    world.fail_over()
            except (AssertionError, HeadraceError) as error:
                raise AssertionError(f"line {number}: {' '.join(words)}: {error!r}") from error


class _Play:
    def __init__(self, world: World) -> None:
        self._world = world
        self._processes: dict[str, Producer] = {}
        self._verbs: dict[str, Callable[[str, list[str]], None]] = {
            "starts": self._starts,
            "goes": self._goes_on,
            "is": self._is,
            "adds": lambda who, words: world.add(self._processes[who], words[0]),
            "sends": self._sends,
            "asks": lambda who, words: world.partition(words[0]).ask(self._processes[who]),
            "misses": self._misses,
            "commits": lambda who, words: self._ends(who, words, commit=True),
            "aborts": lambda who, words: self._ends(who, words, commit=False),
        }

    def step(self, words: list[str]) -> None:
        world = self._world
        if words[0] == "expect":
            self._expect(words[1:])
        elif words[0] == "markers":
            world.write_markers(words[1:])
        elif words[0] == "marker":
            place, _, who, result, _, epoch = words[1:]
            world.partition(place).end(self._processes[who], result == "commits", int(epoch), 0)
        elif words[0] == "failover":
            world.fail_over()
        elif words[0] == "wait":
            world.wait(int(words[1]))
        else:
            self._verbs[words[1]](words[0], words[2:])

    # --- processes ---------------------------------------------------------------------------------------

    def _starts(self, who: str, words: list[str]) -> None:
        coordinator = self._world.coordinator
        seconds = int(words[words.index("timeout") + 1]) if "timeout" in words else 60
        two_phase = "two" in words
        self._processes[who] = coordinator.producer(
            timeout_ms=FOREVER_MS if two_phase else seconds * 1000,
            two_phase=two_phase,
            keep="keeping" in words,
        )

    def _goes_on(self, who: str, _words: list[str]) -> None:
        self._processes[who] = self._world.coordinator.producer(self._processes[who])

    def _is(self, who: str, words: list[str]) -> None:
        if words[0] == "told":
            self._world.partition(words[1]).tell(self._processes[who])
        else:
            self._processes[who] = self._processes[words[0]]

    def _sends(self, who: str, words: list[str]) -> None:
        partition = self._world.partition(words[0])
        for value in words[1:]:
            partition.send(self._processes[who], value)

    def _ends(self, who: str, words: list[str], *, commit: bool) -> None:
        version = 4 if words == [_OLD] else 5
        self._processes[who] = self._world.coordinator.end(
            self._processes[who], commit=commit, version=version
        )

    def _misses(self, who: str, words: list[str]) -> None:
        self._world.coordinator.end(self._processes[who], commit=words[0] == "commits")

    # --- expectations ------------------------------------------------------------------------------------

    def _expect(self, words: list[str]) -> None:
        if words[0] == "refused":
            *step, name = words[1:]
            step[-1] = step[-1].removesuffix(":")
            self._expect_refused(step, name)
            return
        what, _, *found = words
        if what == "state":
            assert self._world.coordinator.state.shown == found[0], self._world.coordinator.state.shown
        elif what in self._processes:
            assert self._processes[what] == self._processes[found[0]]
        else:
            values, is_held_up = self._world.partition(what).committed()
            read = [*values, "..."] if is_held_up else values
            assert read == found, read

    def _expect_refused(self, step: list[str], name: str) -> None:
        try:
            self.step(step)
        except getattr(errors, name):
            return
        except HeadraceError as error:
            raise AssertionError(f"was refused otherwise: {error!r}") from None
        raise AssertionError("was not refused")
