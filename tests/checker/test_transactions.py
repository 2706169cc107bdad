"""What transactions must not do, each beside the nearest thing that they may do."""

from __future__ import annotations

import pytest

from tests.checker.anomalies import Kind
from tests.checker.check import Settings, check
from tests.checker.forgery import FORGERIES
from tests.checker.history import Action, Assign, History, Outcome, Poll, Send, Subscribe, Value

X, Y = "x-0", "y-0"


class Story(History):
    """Transactions in one line each."""

    def committed(self, process: str, *actions: Action) -> None:
        self.ok(self.invoke(process, "transaction", actions), actions)

    def aborted(self, process: str, *actions: Action) -> None:
        self.fail(self.invoke(process, "transaction", actions), "aborted", actions)

    def unsettled(self, process: str, *actions: Action) -> None:
        self.unknown(self.invoke(process, "transaction", actions), "nobody knows", actions)

    def polled(self, process: str, key: str, *records: tuple[int, Value]) -> None:
        self.ok(self.invoke(process, "poll", [Poll()]), [Poll({key: list(records)})])


def kinds(history: History, settings: Settings | None = None) -> list[Kind]:
    return [anomaly.kind for anomaly in check(history, settings or Settings()).anomalies]


@pytest.fixture
def story() -> Story:
    return Story()


def test_a_value_of_an_aborted_transaction_is_read(story: Story) -> None:
    story.aborted("t", Send(X, 1, 0), Send(Y, 2, 0))
    story.polled("c", Y, (0, 2))
    assert kinds(story) == [Kind.ABORTED_READ]


def test_a_value_of_an_aborted_transaction_is_read_by_one_that_is_aborted_too(story: Story) -> None:
    story.aborted("t", Send(X, 1, 0))
    story.aborted("u", Poll({X: [(0, 1)]}))
    assert kinds(story) == [Kind.ABORTED_READ]


def test_an_aborted_transaction_may_read_what_is_committed(story: Story) -> None:
    story.committed("t", Send(X, 1, 0))
    story.aborted("u", Poll({X: [(0, 1)]}), Send(Y, 2, 0))
    assert kinds(story) == []


def test_a_transaction_of_unknown_outcome_may_be_read_or_not(story: Story) -> None:
    story.unsettled("t", Send(X, 1, 0))
    assert kinds(story) == []
    story.polled("c", X, (0, 1))
    assert kinds(story) == []


def test_a_transaction_polls_its_own_send(story: Story) -> None:
    story.committed("t", Send(X, 1, 0), Poll({X: [(0, 1)]}))
    assert kinds(story) == [Kind.PRECOMMITTED_READ]
    assert kinds(story, Settings(read_committed=False)) == []


def test_an_aborted_transaction_polls_its_own_send(story: Story) -> None:
    story.aborted("t", Send(X, 1, 0), Poll({X: [(0, 1)]}))
    assert set(kinds(story)) == {Kind.PRECOMMITTED_READ, Kind.ABORTED_READ}


def test_the_next_transaction_of_a_process_may_poll_what_it_sent_before(story: Story) -> None:
    story.committed("t", Send(X, 1, 0))
    story.committed("t", Send(X, 2, 2), Poll({X: [(0, 1)]}))
    story.polled("c", X, (0, 1), (2, 2))
    assert kinds(story) == []


def test_two_transactions_read_from_each_other(story: Story) -> None:
    story.committed("t", Send(X, 1, 0), Poll({Y: [(0, 2)]}))
    story.committed("u", Send(Y, 2, 0), Poll({X: [(0, 1)]}))
    assert kinds(story) == [Kind.READ_CYCLE]


def test_a_cycle_through_a_transaction_of_unknown_outcome_counts(story: Story) -> None:
    """Its value was read, so it has happened."""
    story.unsettled("t", Send(X, 1, 0), Poll({Y: [(0, 2)]}))
    story.committed("u", Send(Y, 2, 0), Poll({X: [(0, 1)]}))
    assert kinds(story) == [Kind.READ_CYCLE]


def test_one_may_read_from_the_other_that_writes_behind_it(story: Story) -> None:
    """Write-write edges make no cycle here: records of transactions may lie in any order (G0)."""
    story.committed("t", Send(X, 1, 0), Send(Y, 2, 1))
    story.committed("u", Send(X, 3, 1), Send(Y, 4, 0), Poll({X: [(0, 1)]}))
    story.polled("c", X, (0, 1), (1, 3))
    story.polled("c", Y, (0, 4), (1, 2))
    assert kinds(story) == []


def test_a_transaction_may_come_between_two_sends_of_another(story: Story) -> None:
    story.committed("t", Send(X, 1, 0), Send(X, 3, 2))
    story.committed("u", Send(X, 2, 1))
    story.polled("c", X, (0, 1), (1, 2), (2, 3))
    assert kinds(story) == []


def test_half_of_a_committed_transaction_is_lost(story: Story) -> None:
    story.committed("t", Send(X, 1, 0), Send(Y, 2, 0))
    story.committed("t", Send(X, 3, 2))
    story.polled("c", X, (2, 3))
    story.polled("c", Y, (0, 2))
    assert kinds(story) == [Kind.LOST_WRITE]


def test_half_of_a_committed_transaction_is_unseen_at_the_end(story: Story) -> None:
    story.committed("t", Send(X, 1, 0), Send(Y, 2, 0))
    story.polled("c", Y, (0, 2))
    assert kinds(story) == [Kind.UNSEEN]
    assert kinds(story, Settings(final_reads=False)) == []


def test_half_of_a_transaction_of_unknown_outcome_is_unseen_where_the_other_half_was_read(
    story: Story,
) -> None:
    story.unsettled("t", Send(X, 1, 0), Send(Y, 2, 0))
    assert kinds(story) == []
    story.polled("c", Y, (0, 2))
    assert kinds(story) == [Kind.UNSEEN]


def test_an_aborted_value_may_be_missing_between_two_that_were_read(story: Story) -> None:
    story.committed("t", Send(X, 1, 0))
    story.aborted("t", Send(X, 2, 2))
    story.committed("t", Send(X, 3, 4))
    story.polled("c", X, (0, 1), (4, 3))
    assert kinds(story) == []


def test_sends_of_a_transaction_of_unknown_outcome_out_of_order(story: Story) -> None:
    story.unsettled("t", Send(X, 1), Send(X, 2))
    story.polled("c", X, (0, 2), (1, 1))
    assert kinds(story) == [Kind.SEND_ORDER_INSIDE]


def test_single_sends_of_unknown_outcome_have_no_order(story: Story) -> None:
    for value in (1, 2):
        story.unknown(story.invoke("a", "send", [Send(X, value)]), "time-out")
    story.polled("c", X, (0, 2), (1, 1))
    assert kinds(story) == []


def _three(story: Story) -> None:
    story.committed("t", *(Send(X, offset, offset) for offset in range(3)))
    story.polled("everything", X, (0, 0), (1, 1), (2, 2))


@pytest.mark.parametrize(
    ("then", "kind"), [((2, 2), Kind.SKIP), ((0, 0), Kind.STEP_BACK)], ids=["skip", "step back"]
)
def test_positions_jump_between_transactions_under_subscribe_only(
    story: Story, then: tuple[int, Value], kind: Kind
) -> None:
    _three(story)
    for process, action in (("subscriber", Subscribe(("x",))), ("assigned", Assign((X,)))):
        story.ok(story.invoke(process, "other", [action]))
        story.committed(process, Poll({X: [(0, 0)]}))
        story.committed(process, Poll({X: [then]}))
    assert kinds(story) == [kind]


def test_a_skip_between_two_polls_of_one_transaction_is_one_under_subscribe_too(story: Story) -> None:
    _three(story)
    story.ok(story.invoke("c", "other", [Subscribe(("x",))]))
    story.committed("c", Poll({X: [(0, 0)]}), Poll({X: [(2, 2)]}))
    assert kinds(story) == [Kind.POLL_SKIP]


def test_a_rebalance_between_two_polls_of_one_transaction_may_move_it(story: Story) -> None:
    _three(story)
    story.ok(story.invoke("c", "other", [Subscribe(("x",))]))
    story.committed("c", Poll({X: [(0, 0)]}), Poll({X: [(2, 2)]}, rebalanced=(X,)))
    assert kinds(story) == []


@pytest.mark.parametrize(
    "action", [Subscribe(("x",), "g"), Assign((X,), True, "g")], ids=["subscribe", "assign"]
)
def test_a_group_consumes_a_record_in_two_committed_transactions(story: Story, action: Action) -> None:
    _three(story)
    for process in ("c", "d"):
        story.ok(story.invoke(process, "other", [action]))
        story.committed(process, Poll({X: [(0, 0)]}))
    assert kinds(story) == [Kind.CONSUMED_TWICE]


def test_a_record_may_be_consumed_again_after_an_abort_and_by_another_group(story: Story) -> None:
    _three(story)
    for process, group in (("c", "g"), ("d", "g"), ("e", "another"), ("f", ""), ("h", "")):
        story.ok(story.invoke(process, "other", [Subscribe(("x",), group)]))
    story.aborted("c", Poll({X: [(0, 0)]}))
    for process in "defh":
        story.committed(process, Poll({X: [(0, 0)]}))
    story.committed("c", Poll({X: [(1, 1)]}))
    assert kinds(story) == []


def test_the_verdict_counts_transactions(story: Story) -> None:
    story.committed("t", Send(X, 1, 0))
    story.aborted("t", Send(X, 2, 1))
    story.unsettled("t", Send(X, 3, 2))
    story.polled("c", X, (0, 1))
    verdict = check(story)
    assert verdict.transactions == {Outcome.OK: 1, Outcome.FAIL: 1, Outcome.UNKNOWN: 1}
    assert "1 transactions committed, 1 aborted, 1 unknown" in str(verdict)


@pytest.mark.parametrize("kind", FORGERIES, ids=lambda kind: kind.value)
def test_a_good_history_made_bad_is_called_bad(story: Story, kind: Kind) -> None:
    _three(story)
    assert kinds(story) == []
    assert kind in kinds(FORGERIES[kind](story))
    assert kinds(story) == [], "the history itself was changed"


def test_nothing_can_be_forged_where_nothing_was_read(story: Story) -> None:
    story.committed("t", Send(X, 1, 0))
    with pytest.raises(ValueError):
        FORGERIES[Kind.LOST_WRITE](story)
