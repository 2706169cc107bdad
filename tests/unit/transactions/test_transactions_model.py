"""Any order of requests, lost answers, zombies, timeouts and failovers: what a transaction promises holds.

The model knows little: who holds the id, which transaction is open, and which result each transaction was
decided with. The rest are promises. No identity is given to two processes. A transaction has one result, and
what its owner was told is what its partitions are told. Nobody but the holder changes anything.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.core.errors import (
    ClientError,
    ConcurrentTransactions,
    HeadraceError,
    InvalidTransactionState,
    ProducerFenced,
)
from headrace.transactions.shard import TransactionSettings
from headrace.transactions.states import TransactionState
from headrace.transactions.transaction import LAST_GIVEN_EPOCH, Producer
from tests.unit.transactions.coordinator import ID, TIMEOUT_MS, MemoryCoordinator

S = TransactionState
WEEK_MS = 7 * 24 * 3600 * 1000


class OneTransactionalId(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.coordinator = MemoryCoordinator(settings=TransactionSettings(two_phase_commit=True))
        self.holder: Producer | None = None
        """Whose requests count; None while nobody is known to be told."""
        self.given: dict[Producer, None] = {}
        self.partitions: dict[tuple[str, int], None] = {}
        """Of the open transaction."""
        self.is_open = False
        self.told: bool | None = None
        """Of the transaction that is being completed: what its owner was told, or None for an abort by the
        coordinator."""
        self.last_end: tuple[Producer, bool, Producer] | None = None
        """By EndTxn 5: who sent it, what it asked for, and what it was answered."""
        self.went_on_from: Producer | None = None
        """What the holder named when it asked for its present identity: it may ask once more."""

    # --- producers ---------------------------------------------------------------------------------------

    def _give(self, producer: Producer) -> None:
        assert producer not in self.given, "an identity was given twice"
        self.given[producer] = None
        self.holder = producer
        self.last_end = self.went_on_from = None

    @property
    def _is_prepared(self) -> bool:
        known = self.coordinator.shard.transactions.get(ID)
        return known is not None and known.state.is_prepared

    @rule(two_phase=st.booleans())
    def another_process_comes(self, two_phase: bool) -> None:
        def take() -> None:
            self._give(self.coordinator.producer(two_phase=two_phase))

        if self.is_open or self._is_prepared:
            self._refused(take, ConcurrentTransactions)
            if self.is_open:
                self.is_open, self.told, self.holder, self.last_end = False, False, None, None
        else:
            take()

    @rule()
    @precondition(lambda self: self.holder is not None)
    def the_holder_goes_on(self) -> None:
        holder = self.holder
        assert holder is not None

        def go_on() -> None:
            self._give(self.coordinator.producer(holder))

        if self._is_prepared:
            self._refused(go_on, ConcurrentTransactions, ProducerFenced)
        elif self.is_open:
            self._refused(go_on, ConcurrentTransactions)
            self.is_open, self.told, self.holder, self.last_end = False, False, None, None
        else:
            go_on()
            self.went_on_from = holder

    @rule()
    @precondition(
        lambda self: (
            None not in (self.holder, self.went_on_from) and not self.is_open and not self._is_prepared
        )
    )
    def going_on_is_repeated(self) -> None:
        """The answer is the same, or after a failover a refusal."""
        assert self.went_on_from is not None
        try:
            assert self.coordinator.producer(self.went_on_from) == self.holder
        except ProducerFenced:
            return

    @rule()
    @precondition(lambda self: self.is_open)
    def another_process_keeps_it(self) -> None:
        answer = self.coordinator.initialise(two_phase=True, keep=True)
        assert answer.ongoing is not None
        assert answer.ongoing in self.given
        self._give(answer.producer)

    @rule()
    @precondition(lambda self: self.holder is not None and not self._is_prepared and not self.is_open)
    def epochs_are_used_up(self) -> None:
        known = self.coordinator.transaction
        if known.producer_epoch < LAST_GIVEN_EPOCH - 3:
            self.coordinator.set_state(known._replace(producer_epoch=LAST_GIVEN_EPOCH - 2))
            self.coordinator.fail_over()
            self.last_end = None
            self._give(Producer(known.producer_id, LAST_GIVEN_EPOCH - 2))

    # --- transactions ------------------------------------------------------------------------------------

    @rule(partition=st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2)))
    @precondition(lambda self: self.holder is not None)
    def the_holder_adds(self, partition: tuple[str, int]) -> None:
        holder = self.holder
        assert holder is not None
        known = self.coordinator.transaction
        if self._is_prepared:
            self._refused(
                lambda: self.coordinator.add(holder, partition),
                ConcurrentTransactions,
                ProducerFenced,
                ClientError,
            )
        elif known.is_kept:
            self._refused(lambda: self.coordinator.add(holder, partition), InvalidTransactionState)
        else:
            self.coordinator.add(holder, partition)
            self.is_open = True
            self.partitions[partition] = None
            assert self.coordinator.missing(holder, partition) == []

    @rule(commit=st.booleans(), version=st.sampled_from([4, 5]))
    @precondition(lambda self: self.holder is not None and not self._is_prepared)
    def the_holder_ends(self, commit: bool, version: int) -> None:
        holder = self.holder
        assert holder is not None
        if not self.is_open and (commit or version == 4):
            try:
                assert self.coordinator.end(holder, commit=commit, version=version) == holder
            except InvalidTransactionState:
                return
            assert version == 4, "only older clients repeat themselves with the same epoch"
            return
        after = self.coordinator.end(holder, commit=commit, version=version)
        if version == 5:
            self._give(after)
            self.last_end = (holder, commit, after)
        else:
            assert after == holder
        self.is_open, self.told = False, commit

    @rule(changes_its_mind=st.booleans())
    @precondition(lambda self: self.last_end is not None)
    def an_end_is_repeated(self, changes_its_mind: bool) -> None:
        assert self.last_end is not None
        sender, commit, answer = self.last_end
        wish = commit != changes_its_mind

        def repeat() -> None:
            assert self.coordinator.end(sender, commit=wish) == answer

        if self.is_open:
            self._refused(repeat, ClientError)
        elif changes_its_mind:
            self._refused(repeat, InvalidTransactionState)
        elif self._is_prepared:
            self._refused(repeat, ConcurrentTransactions)
        else:
            repeat()

    @rule(which=st.integers(0, 1_000), wish=st.sampled_from(["add", "commit", "abort", "resume", "verify"]))
    @precondition(lambda self: len(self.given) > 1)
    def a_zombie_comes_back(self, which: int, wish: str) -> None:
        zombies = [each for each in self.given if each != self.holder]
        zombie = zombies[which % len(zombies)]
        if self.last_end is not None and zombie == self.last_end[0]:
            return  # that is no zombie, but a repeated request
        if zombie == self.went_on_from and wish == "resume":
            return  # nor is that
        known = self.coordinator.shard.transactions.get(ID)
        if wish == "resume" and (self.is_open or known is None):
            return  # aborts what is open, as in Kafka; and what was forgotten is everybody's
        requests: dict[str, Callable[[], object]] = {
            "add": lambda: self.coordinator.add(zombie),
            "verify": lambda: self.coordinator.missing(zombie, ("a", 0)),
            "commit": lambda: self.coordinator.end(zombie, commit=True),
            "abort": lambda: self.coordinator.end(zombie, commit=False, version=4),
            "resume": lambda: self.coordinator.producer(zombie),
        }
        self._refused(requests[wish], ClientError, ConcurrentTransactions)

    # --- the world ---------------------------------------------------------------------------------------

    @rule()
    def markers_are_written(self) -> None:
        for markers in self.coordinator.write_markers():
            assert markers.commit == bool(self.told), "the partitions are told something else"
            places = {(topic, index) for topic, indexes in markers.partitions.items() for index in indexes}
            assert places == set(self.partitions)
            assert any(each.producer_id == markers.producer.producer_id for each in self.given)
        if not self.is_open:
            self.partitions.clear()

    @rule()
    def the_coordinator_fails_over(self) -> None:
        self.coordinator.fail_over()

    @rule()
    def time_passes(self) -> None:
        self.coordinator.pass_time(TIMEOUT_MS + 1)
        never = self.is_open and self.coordinator.transaction.never_times_out
        self.coordinator.fire("abort")
        if self.is_open and not never:
            assert self.coordinator.state is S.PREPARE_ABORT
            self.is_open, self.told, self.holder, self.last_end = False, False, None, None

    @rule()
    def a_week_passes(self) -> None:
        self.coordinator.pass_time(WEEK_MS)
        self.coordinator.fire("expiry")
        assert (ID in self.coordinator.shard.transactions) == (self.is_open or self._is_prepared)
        if not self.is_open and not self._is_prepared:
            self.holder = self.last_end = None

    @invariant()
    def an_open_transaction_is_known(self) -> None:
        known = self.coordinator.shard.transactions.get(ID)
        is_open = known is not None and known.state is S.ONGOING
        assert is_open == self.is_open
        if known is not None and is_open:
            places = {(topic, index) for topic, indexes in known.partitions.items() for index in indexes}
            assert places == set(self.partitions)
        if known is not None and not known.state.is_prepared:
            assert self.holder is None or known.holder == self.holder

    def _refused(self, request: Callable[[], object], *errors: type[HeadraceError]) -> None:
        try:
            request()
        except errors:
            return
        raise AssertionError(f"was not refused with any of {errors}")


OneTransactionalId.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestOneTransactionalId = OneTransactionalId.TestCase
