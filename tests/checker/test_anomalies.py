"""Every anomaly is found where it is, and nothing is found in a history that has none."""

from __future__ import annotations

import pytest

from tests.checker.anomalies import Kind
from tests.checker.check import Settings, check
from tests.checker.history import Action, Assign, History, Poll, Send, Subscribe, Value

KEY = "t-0"
Records = list[tuple[int, Value]]


class Story(History):
    """Shorter words for what tests tell."""

    def sent(self, process: str, value: Value, offset: int | None) -> None:
        self.ok(self.invoke(process, "send", [Send(KEY, value)]), [Send(KEY, value, offset)])

    def polled(self, process: str, *records: tuple[int, Value]) -> None:
        self.ok(self.invoke(process, "poll", [Poll()]), [Poll({KEY: list(records)})])

    def did(self, process: str, action: Action) -> None:
        self.ok(self.invoke(process, "other", [action]))

    def transaction(self, process: str, *actions: Action) -> None:
        self.ok(self.invoke(process, "transaction", actions))


def kinds(history: History, settings: Settings | None = None) -> list[Kind]:
    return [anomaly.kind for anomaly in check(history, settings or Settings()).anomalies]


@pytest.fixture
def story() -> Story:
    return Story()


def test_a_good_history_has_no_anomaly(story: Story) -> None:
    story.sent("a", 1, 0)
    story.sent("b", 2, 1)
    story.sent("a", 3, 3)
    story.polled("c", (0, 1), (1, 2))
    story.polled("c", (3, 3))
    verdict = check(story)
    assert verdict.valid
    assert (verdict.acknowledged, verdict.read) == (3, 3)
    assert "no anomaly" in str(verdict)


def test_values_must_be_unique(story: Story) -> None:
    story.sent("a", 1, 0)
    story.sent("a", 1, 1)
    with pytest.raises(ValueError):
        check(story)


def test_an_offset_with_two_values_among_readers(story: Story) -> None:
    for value in (1, 2):
        story.invoke("a", "send", [Send(KEY, value)])
    story.polled("c", (0, 1))
    story.polled("d", (0, 2))
    assert kinds(story) == [Kind.INCONSISTENT_OFFSET]


def test_an_offset_with_two_values_where_the_writer_was_told_another_place(story: Story) -> None:
    story.sent("a", 1, 0)
    story.sent("b", 2, 0)
    story.polled("c", (0, 2))
    assert Kind.INCONSISTENT_OFFSET in kinds(story)


def test_a_value_at_two_offsets(story: Story) -> None:
    story.sent("a", 1, 0)
    story.polled("c", (0, 1), (1, 1))
    assert kinds(story) == [Kind.DUPLICATE]
    assert kinds(story, Settings(idempotent=False)) == []
    assert [each.kind for each in check(story, Settings(idempotent=False)).tolerated] == [Kind.DUPLICATE]


def test_an_acknowledged_value_below_what_was_read_is_lost(story: Story) -> None:
    story.sent("a", 1, 0)
    story.sent("a", 2, 1)
    story.polled("c", (1, 2))
    assert kinds(story) == [Kind.LOST_WRITE]
    assert kinds(story, Settings(final_reads=False)) == [Kind.LOST_WRITE]


def test_a_transaction_of_unknown_outcome_of_which_one_value_was_read_must_be_there_whole(
    story: Story,
) -> None:
    story.sent("a", 2, 5)
    story.unknown(
        story.invoke("t", "transaction", [Send(KEY, 1, 1), Send("t-1", 7, 0)]),
        actions=[Send(KEY, 1, 1), Send("t-1", 7, 0)],
    )
    story.polled("c", (5, 2))
    assert kinds(story) == []
    story.ok(story.invoke("c", "poll"), [Poll({"t-1": [(0, 7)]})])
    assert kinds(story) == [Kind.LOST_WRITE]


def test_an_acknowledged_value_that_the_final_reads_lack_is_unseen(story: Story) -> None:
    story.sent("a", 1, 0)
    story.sent("a", 2, 1)
    story.sent("a", 3, None)
    story.polled("c", (0, 1))
    assert kinds(story) == [Kind.UNSEEN, Kind.UNSEEN]
    assert kinds(story, Settings(final_reads=False)) == []


def test_a_value_of_unknown_outcome_may_be_there_or_not(story: Story) -> None:
    story.unknown(story.invoke("a", "send", [Send(KEY, 1)]), "time-out")
    story.unknown(story.invoke("a", "send", [Send(KEY, 2)]), "time-out")
    story.polled("c", (0, 2))
    assert kinds(story) == []


def test_a_refused_value_that_is_read(story: Story) -> None:
    story.fail(story.invoke("a", "send", [Send(KEY, 1)]), "not enough replicas")
    story.polled("c", (0, 1))
    assert kinds(story) == [Kind.ABORTED_READ]
    assert kinds(story, Settings(read_committed=False)) == []


def test_a_value_that_nobody_sent(story: Story) -> None:
    story.polled("c", (0, 99))
    assert kinds(story) == [Kind.INVENTED_READ]


def test_a_transaction_that_reads_its_own_send(story: Story) -> None:
    story.transaction("t", Send(KEY, 1, 0), Poll({KEY: [(0, 1)]}))
    assert kinds(story) == [Kind.PRECOMMITTED_READ]


def _three_sent(story: Story) -> None:
    for offset in range(3):
        story.sent("a", offset, offset)
    story.polled("everything", (0, 0), (1, 1), (2, 2))


def test_a_skip_inside_a_poll(story: Story) -> None:
    _three_sent(story)
    story.polled("c", (0, 0), (2, 2))
    assert kinds(story) == [Kind.POLL_SKIP]


@pytest.mark.parametrize("records", [[(1, 1), (0, 0)], [(1, 1), (1, 1)]])
def test_a_step_back_inside_a_poll(story: Story, records: Records) -> None:
    _three_sent(story)
    story.polled("c", *records)
    assert kinds(story) == [Kind.POLL_STEP_BACK]


def test_a_skip_between_polls(story: Story) -> None:
    _three_sent(story)
    story.polled("c", (0, 0))
    story.polled("c", (2, 2))
    assert kinds(story) == [Kind.SKIP]


@pytest.mark.parametrize("again", [(0, 0), (1, 1)])
def test_a_step_back_between_polls(story: Story, again: tuple[int, Value]) -> None:
    _three_sent(story)
    story.polled("c", (0, 0), (1, 1))
    story.polled("c", again)
    assert kinds(story) == [Kind.STEP_BACK]


def test_positions_may_jump_under_subscribe_but_not_inside_a_poll(story: Story) -> None:
    _three_sent(story)
    story.did("c", Subscribe(("t",)))
    story.polled("c", (2, 2))
    story.polled("c", (0, 0))
    assert kinds(story) == []
    story.polled("c", (1, 1), (0, 0))
    assert kinds(story) == [Kind.POLL_STEP_BACK]


def test_a_key_that_was_just_rebalanced_may_jump(story: Story) -> None:
    _three_sent(story)
    story.polled("c", (2, 2))
    story.ok(story.invoke("c", "poll"), [Poll({KEY: [(0, 0)]}, rebalanced=(KEY,))])
    assert kinds(story) == []


def test_an_assignment_keeps_positions_unless_it_seeks(story: Story) -> None:
    _three_sent(story)
    story.polled("c", (0, 0), (1, 1))
    story.did("c", Assign((KEY, "t-1")))
    story.polled("c", (0, 0))
    assert kinds(story) == [Kind.STEP_BACK]
    story.did("c", Assign((KEY,), from_beginning=True))
    story.polled("c", (0, 0))
    story.did("c", Assign(("t-1",)))
    story.did("c", Assign((KEY,)))
    story.polled("c", (0, 0))
    assert kinds(story) == [Kind.STEP_BACK]


def test_processes_have_positions_of_their_own(story: Story) -> None:
    _three_sent(story)
    story.polled("c", (0, 0))
    story.polled("d", (2, 2))
    story.polled("c", (1, 1))
    assert kinds(story) == []


def test_sends_of_one_operation_out_of_order(story: Story) -> None:
    story.transaction("t", Send(KEY, 1, 1), Send(KEY, 2, 0))
    story.polled("c", (0, 2), (1, 1))
    assert kinds(story) == [Kind.SEND_ORDER_INSIDE]


def test_sends_of_one_process_out_of_order(story: Story) -> None:
    story.sent("a", 1, 1)
    story.sent("a", 2, 0)
    story.polled("c", (0, 2), (1, 1))
    assert kinds(story) == [Kind.SEND_ORDER]
    assert kinds(story, Settings(idempotent=False)) == []


def test_sends_of_different_processes_have_no_order(story: Story) -> None:
    story.sent("a", 1, 1)
    story.sent("b", 2, 0)
    story.polled("c", (0, 2), (1, 1))
    assert kinds(story) == []


def test_transactions_that_read_from_each_other(story: Story) -> None:
    story.transaction("a", Send("x", 1, 0), Poll({"y": [(0, 2)]}))
    story.transaction("b", Send("y", 2, 0), Poll({"z": [(0, 3)]}))
    story.transaction("c", Send("z", 3, 0), Poll({"x": [(0, 1)]}))
    verdict = check(story)
    assert [anomaly.kind for anomaly in verdict.anomalies] == [Kind.READ_CYCLE]
    assert sorted(verdict.anomalies[0].operations) == [0, 1, 2]


def test_a_chain_of_reads_is_no_cycle(story: Story) -> None:
    story.transaction("a", Send("x", 1, 0))
    story.transaction("b", Send("y", 2, 0), Poll({"x": [(0, 1)]}))
    story.transaction("c", Send("z", 3, 0), Poll({"x": [(0, 1)], "y": [(0, 2)]}))
    story.ok(story.invoke("d", "poll"), [Poll({"z": [(0, 3)]})])
    assert kinds(story) == []


def test_without_acks_of_all_a_loss_is_tolerated_but_not_a_copy(story: Story) -> None:
    story.sent("a", 1, 0)
    story.sent("a", 2, 1)
    story.sent("a", 3, 2)
    story.polled("c", (1, 2), (2, 3), (3, 3))
    verdict = check(story, Settings(acknowledged_by_all=False))
    assert [anomaly.kind for anomaly in verdict.anomalies] == [Kind.DUPLICATE]
    assert [anomaly.kind for anomaly in verdict.tolerated] == [Kind.LOST_WRITE]


def test_a_long_verdict_is_cut_short(story: Story) -> None:
    story.polled("c", *((offset, offset) for offset in range(50)))
    text = str(check(story))
    assert "50 x invented read" in text
    assert "and 30 more" in text
