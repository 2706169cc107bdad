"""The commands for transactions, against scripted coordinators."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.describe_producers_response import ProducerState
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.list_transactions_request import ListTransactionsRequest
from headrace.protocol.messages.write_txn_markers_request import WriteTxnMarkersRequest
from tests.unit.cli.serving import Run, runner, serving
from tests.unit.client.scripted_transactions import ScriptedTransaction, ScriptedTransactions

HOUR_MS = 3_600_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def script() -> Iterator[ScriptedTransactions]:
    """pay-1 is open in t-0, and so is what an unknown producer left there. done-2 has ended."""
    broker = ScriptedTransactions()
    broker.topics = {"t": 2}
    broker.transactions = {
        "pay-1": ScriptedTransaction(producer_id=7, start_ms=now_ms() - HOUR_MS, partitions=[("t", 0)]),
        "done-2": ScriptedTransaction(state="CompleteCommit", producer_id=8, start_ms=5),
    }
    broker.open = {
        ("t", 0): [
            producer(7, start=10),
            producer(99, start=4, epoch=3, coordinator_epoch=-1),
            producer(5, start=-1),
        ],
        ("t", 1): [producer(7, start=30)],
    }
    with serving(broker):
        yield broker


def producer(producer_id: int, start: int, epoch: int = 0, coordinator_epoch: int = 2) -> ProducerState:
    return ProducerState(
        producer_id=producer_id,
        producer_epoch=epoch,
        last_timestamp=now_ms() - HOUR_MS,
        coordinator_epoch=coordinator_epoch,
        current_txn_start_offset=start,
    )


@pytest.fixture
def run(script: ScriptedTransactions) -> Run:
    return runner(script.address)


def cells(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_list_asks_every_broker(run: Run) -> None:
    head, done, pay = cells(run("txn", "list").stdout)
    assert head == ["ID", "STATE", "PRODUCER", "EPOCH", "PARTITIONS", "COORDINATOR", "AGE"]
    assert done == ["done-2", "CompleteCommit", "8", "0", "0", "0", "-"]
    assert pay == ["pay-1", "Ongoing", "7", "0", "1", "1", "1h"]


def test_list_filters(run: Run, script: ScriptedTransactions) -> None:
    (told,) = json.loads(run("txn", "list", "--state", "ongoing", "--json").stdout)
    assert told["id"] == "pay-1"
    assert HOUR_MS <= told["age_ms"] < 2 * HOUR_MS
    assert [line[0] for line in cells(run("txn", "list", "--pattern", "done.*").stdout)] == ["ID", "done-2"]
    # What has ended runs no longer, whatever the broker says of its start.
    assert [line[0] for line in cells(run("txn", "list", "--older-than", "15m").stdout)] == ["ID", "pay-1"]
    assert script.seen(ListTransactionsRequest)[-1].duration_filter == 900_000
    assert "no transactions like that" in run("txn", "list", "--pattern", "x").stderr
    assert "not a regular expression" in run("txn", "list", "--pattern", "(", code=1).stderr


def test_an_old_broker_cannot_filter_by_age_but_by_pattern(run: Run, script: ScriptedTransactions) -> None:
    script.ranges[ListTransactionsRequest.API_KEY] = (0, 0)
    assert "too old to filter by age" in run("txn", "list", "--older-than", "1m", code=1).stderr
    assert [line[0] for line in cells(run("txn", "list", "--pattern", "done-.").stdout)] == ["ID", "done-2"]


def test_describe(run: Run) -> None:
    lines = run("txn", "describe", "pay-1", "done-2").stdout.splitlines()
    assert lines[0] == "pay-1  state=Ongoing  coordinator=1"
    assert lines[1] == "  producer=7  epoch=0"
    assert lines[2].startswith("  open since 20")
    assert lines[2].endswith(", 1h ago  timeout=1m")
    assert lines[4].split() == ["t", "0"]
    assert "no transaction is open" in lines[8]
    (told,) = json.loads(run("txn", "describe", "pay-1", "--json").stdout)
    assert told["partitions"] == {"t": [0]}
    assert "transactional id x is not known" in run("txn", "describe", "x", code=1).stderr


def test_what_hangs_is_what_no_coordinator_will_end(run: Run) -> None:
    lines = cells(run("txn", "find-hanging", "--topic", "t").stdout)
    assert [line[:5] for line in lines[1:]] == [["t", "0", "4", "99", "3"], ["t", "1", "30", "7", "0"]]
    assert lines[1][-2:] == ["unknown", "producer"]
    assert " ".join(lines[2][-6:]) == "is Ongoing, not in this partition"
    assert len(cells(run("txn", "find-hanging", "--all").stdout)) == 4
    assert len(cells(run("txn", "find-hanging", "--all", "--silent-for", "2h").stdout)) == 0


def test_new_ones_are_shown_with_all_the_others(run: Run, script: ScriptedTransactions) -> None:
    script.open = {("t", 1): [producer(99, start=4)]}
    script.open["t", 1][0].last_timestamp = now_ms() + 60_000
    assert "none" in run("txn", "find-hanging").stderr
    assert len(cells(run("txn", "find-hanging", "--all").stdout)) == 2
    script.open = {}
    assert "no transaction is open there" in run("txn", "find-hanging", "--all").stderr


def test_hanging_ones_can_be_looked_for_more_closely(run: Run) -> None:
    told = json.loads(run("txn", "find-hanging", "-t", "t", "-p", "0", "--json").stdout)
    assert [(entry["partition"], entry["start_offset"], entry["hangs"]) for entry in told] == [(0, 4, True)]
    none = run("txn", "find-hanging", "--silent-for", "2h").stderr
    assert "none: no open transaction has been silent" in none
    assert "none" in run("txn", "find-hanging", "--broker", "1").stderr
    assert "needs exactly one" in run("txn", "find-hanging", "-p", "0", code=2).stderr


@pytest.mark.parametrize("which", [("--start-offset", "4"), ("--producer-id", "99")])
def test_a_hanging_one_is_ended_by_a_marker(
    run: Run, script: ScriptedTransactions, which: tuple[str, str]
) -> None:
    result = run("txn", "abort", "-t", "t", "-p", "0", *which, "--yes")
    assert result.stdout == "aborted t-0 from offset 4 on, producer 99\n"
    (marker,) = script.seen(WriteTxnMarkersRequest)[0].markers
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (99, 3, False)
    # The partition has seen no coordinator of this producer: -1 would be refused.
    assert marker.coordinator_epoch == 0
    assert [state.current_txn_start_offset for state in script.open["t", 0]] == [10, -1, -1]


def test_a_marker_is_asked_about(run: Run, script: ScriptedTransactions) -> None:
    run("txn", "abort", "-t", "t", "-p", "0", "--start-offset", "4", stdin="n\n", code=130)
    assert script.seen(WriteTxnMarkersRequest) == []


def test_a_marker_finds_its_leader_and_may_be_refused(run: Run, script: ScriptedTransactions) -> None:
    script.refuse = [0, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0, 0, ErrorCode.TRANSACTION_COORDINATOR_FENCED]
    run("txn", "abort", "-t", "t", "-p", "1", "--producer-id", "7", "--yes")
    assert len(script.seen(WriteTxnMarkersRequest)) == 2
    script.open["t", 1] = [producer(7, start=40)]
    script.refuse = [0, ErrorCode.TRANSACTION_COORDINATOR_FENCED]
    refused = run("txn", "abort", "-t", "t", "-p", "1", "--producer-id", "7", "--yes", code=1).stderr
    assert "a newer coordinator has written there" in refused


def test_one_that_its_coordinator_will_end_is_left_to_it(run: Run, script: ScriptedTransactions) -> None:
    command = ("txn", "abort", "-t", "t", "-p", "0", "--start-offset", "10", "--yes")
    refused = run(*command, code=1).stderr
    assert "this transaction does not hang: it is Ongoing under the id pay-1" in refused
    assert "hint: `headrace txn abort pay-1` ends it now" in refused
    assert script.seen(WriteTxnMarkersRequest) == []
    (told,) = [json.loads(run(*command, "--force", "--json").stdout)["aborted"]]
    assert (told["producer_id"], told["hangs"]) == (7, False)


def test_what_is_not_open_cannot_be_aborted(run: Run) -> None:
    refused = run("txn", "abort", "-t", "t", "-p", "0", "--start-offset", "5", "--yes", code=1).stderr
    assert "no open transaction in t-0 begins at offset 5" in refused
    assert "those that are open begin at: 10, 4" in refused


def test_abort_by_id_shuts_the_producer_out(run: Run, script: ScriptedTransactions) -> None:
    # The coordinator is asked again while it still writes the markers.
    script.refuse = [0, 0, ErrorCode.CONCURRENT_TRANSACTIONS]
    result = run("txn", "abort", "pay-1", "--yes")
    assert result.stdout == "aborted pay-1, which was Ongoing: 1 partition\n"
    asked = script.seen(InitProducerIdRequest)
    assert len(asked) == 2
    assert (asked[0].producer_id, asked[0].producer_epoch, asked[0].keep_prepared_txn) == (-1, -1, False)
    assert script.transactions["pay-1"].state == "Empty"
    run("txn", "abort", "done-2", stdin="n\n", code=130)
    assert "is not known" in run("txn", "abort", "nobody", "--yes", code=1).stderr


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("pay-1", "--topic", "t"),
        ("--topic", "t"),
        ("--topic", "t", "--partition", "0"),
        ("--topic", "t", "--partition", "0", "--start-offset", "1", "--producer-id", "2"),
    ],
)
def test_abort_wants_to_know_what(run: Run, args: tuple[str, ...]) -> None:
    assert "error: give an ID" in run("txn", "abort", *args, code=2).stderr
