"""The commands for clusters, against a scripted one."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.client import moves
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.list_offsets_request import ListOffsetsRequest
from headrace.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.unit.client.scripted_cluster import ScriptedCluster

Run = Callable[..., Result]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedCluster]:
    """Three brokers, two of them in one rack, a topic of two partitions with two replicas each."""
    monkeypatch.setattr(moves, "POLL_SECONDS", 0.001)
    broker = ScriptedCluster({1: "a", 2: "a", 3: "b"}, {("t", 0): [1, 3], ("t", 1): [3, 1]})
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(broker.__aenter__(), loop).result(10)
    try:
        yield broker
    finally:
        asyncio.run_coroutine_threadsafe(broker.__aexit__(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def run(script: ScriptedCluster) -> Run:
    def invoke(*args: str, stdin: str | None = None, code: int = 0) -> Result:
        environment = {"HEADRACE_BOOTSTRAP": script.address}
        result = CliRunner().invoke(cli, args, input=stdin, env=environment, prog_name="headrace")
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return invoke


def test_status_of_a_healthy_cluster(run: Run, script: ScriptedCluster) -> None:
    lines = run("cluster", "status").stdout.splitlines()
    assert lines[0] == "healthy  cluster scripted  controller 1  brokers 3/3  partitions 2"
    assert lines[1].split() == ["BROKER", "ADDRESS", "RACK", "STATE", "LEADERS", "REPLICAS", "ROLE"]
    assert lines[2].split() == ["1", script.address, "a", "alive", "1", "2", "controller"]
    assert len(lines) == 5


def test_status_names_what_is_wrong_worst_first(run: Run, script: ScriptedCluster) -> None:
    script.fail(3)
    lines = run("cluster", "status", code=3).stdout.splitlines()
    assert lines[0].startswith("unwritable  ")
    assert "brokers 2/3" in lines[0]
    assert lines[1:3] == [
        "unwritable: 2 below min.insync.replicas: acks=all is refused: t-0, t-1",
        "next: start the brokers that are down",
    ]
    assert lines[6].split()[3:] == ["down", "0", "2", "-"]
    assert lines[7:] == [
        "1 not alive: broker 3; start it, or see its log for why it ended; it catches up by itself",
        "2 under-replicated: t-0, t-1",
        "1 not led by the preferred replica: t-1",
    ]


def test_status_as_json_names_every_partition(run: Run, script: ScriptedCluster) -> None:
    script.isr["t", 0] = [1]
    told = json.loads(run("cluster", "status", "--json", code=3).stdout)
    assert told["verdict"] == "unwritable"
    assert told["under_replicated"] == told["under_min_isr"] == ["t-0"]
    assert told["out_of_sync"] == [{"partition": "t-0", "broker": 3, "lag": 7}]
    assert told["max_lag"] == 7
    assert [broker["alive"] for broker in told["brokers"]] == [True, True, True]


def test_status_waits_until_all_is_well(run: Run, script: ScriptedCluster) -> None:
    run("cluster", "status", "--wait", "0")
    script.fail(2)
    assert "1 not alive: broker 2" in run("cluster", "status", "--wait", "0.3", code=3).stdout
    threading.Timer(0.3, script.down.clear).start()
    assert run("cluster", "status", "--wait", "30").stdout.startswith("healthy")
    assert "exclude" in run("cluster", "status", "--wait", "1", "--watch", code=2).stderr


def test_describe_shows_followers_and_their_lag(run: Run) -> None:
    lines = run("topic", "describe", "t").stdout.splitlines()
    assert lines[1] == "  min.insync.replicas=2"
    assert lines[3].split() == ["0", "1", "-1", "1,3", "1,3", "-", "-", "3:7", "100"]
    (told,) = json.loads(run("topic", "describe", "t", "--json").stdout)
    assert told["partitions"][0]["lag"] == {"3": 7}
    assert told["partitions"][0]["bytes"] == 100


def test_reassign_shows_its_plan_and_carries_it_out(run: Run, script: ScriptedCluster) -> None:
    command = ("topic", "reassign", "t", "--replicas", "0=2,3", "--replicas", "1=3,1")
    plan = run(*command, "--plan").stdout.splitlines()
    assert [line.split() for line in plan[:-1]] == [
        ["PARTITION", "FROM", "TO", "COPIES"],
        ["t-0", "1,3", "2,3", "1"],
    ]
    total = "in all: 1 partition, 1 copy, 0.0 MB"
    assert plan[-1] == f"{total}; with --throttle the plan says how long that takes"
    slowly = run(*command, "--plan", "--throttle", "10").stdout.splitlines()
    assert slowly[-1] == f"{total}, at 0.0 MB/s at least 10s"
    told = json.loads(run(*command, "--plan", "--json").stdout)
    assert (told["copies"], told["bytes"]) == (1, 100)
    assert script.history == []
    done = run(*command, "--throttle", "10MB")
    assert done.stdout == "moved 1 partition\n"
    assert "0 of 1 moved, 1 under way" in done.stderr
    assert script.partitions["t", 0] == [2, 3]
    assert "throttle t" in script.history
    assert not any(script.settings.values())
    assert "nothing to move" in run(*command).stderr


def test_reassign_without_waiting_then_cancel(run: Run, script: ScriptedCluster) -> None:
    script.questions = 1000
    asked = run("topic", "reassign", "t", "-r", "0=2,3", "--throttle", "1kB/s", "--no-wait", "--json")
    assert json.loads(asked.stdout) == {
        "moves": [{"topic": "t", "partition": 0, "from": [1, 3], "to": [2, 3]}],
        "done": False,
    }
    assert script.settings[2, "t"]["leader.replication.throttled.replicas"] == "0:1,0:3"
    status = run("cluster", "status").stdout
    assert "1 being moved: t-0 to 2" in status
    assert run("topic", "reassign", "t", "--cancel").stdout == "cancelled t-0\n"
    assert script.partitions["t", 0] == [1, 3]
    assert "nothing of t is being moved" in run("topic", "reassign", "t", "--cancel").stderr


def test_reassign_follow_waits_to_the_end(run: Run, script: ScriptedCluster) -> None:
    run("topic", "reassign", "t", "-r", "0=2,3", "--no-wait")
    assert run("topic", "reassign", "t", "--follow").stdout == "moved t-0\n"
    assert script.partitions["t", 0] == [2, 3]


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ((), "give one of"),
        (("--cancel", "--follow"), "give one of"),
        (("-r", "0=1", "--brokers", "1"), "give one of"),
        (("-r", "0=1,x"), "not a list of broker ids"),
        (("-r", "0=1,1"), "names a broker twice"),
        (("-r", "0=1", "-r", "0=2"), "given twice"),
        (("-r", "first=1"), "not PARTITION=BROKERS"),
        (("-r", "0=1", "--throttle", "fast"), "not a rate"),
        (("-r", "0=1", "--throttle", "0"), "not a rate"),
        (("-r", "0=1", "--replication-factor", "2"), "needs --brokers"),
    ],
)
def test_reassign_refuses_what_it_cannot_understand(run: Run, args: tuple[str, ...], complaint: str) -> None:
    assert complaint in run("topic", "reassign", "t", *args, code=2).stderr


def test_reassign_refuses_what_does_not_exist(run: Run) -> None:
    assert "no partition 7" in run("topic", "reassign", "t", "-r", "7=1", code=1).stderr
    refused = run("topic", "reassign", "t", "-r", "0=9", code=1).stderr
    assert "1 of 1 moves were refused: partition t-0 cannot have these replicas" in refused


def test_elect_leaders(run: Run, script: ScriptedCluster) -> None:
    script.leaders["t", 0] = 3
    assert run("topic", "elect-leaders", "t").stdout == "elected t-0: broker 1 leads\n"
    assert "every partition is led by its preferred" in run("topic", "elect-leaders").stderr
    script.fail(3)
    refused = run("topic", "elect-leaders", "t", "--json", code=1)
    assert list(json.loads(refused.stdout)["refused"]) == ["t-1"]


def test_an_unclean_election_is_asked_about(run: Run, script: ScriptedCluster) -> None:
    assert "name the topics" in run("topic", "elect-leaders", "--unclean", code=2).stderr
    script.leaders["t", 0] = -1
    asked = run("topic", "elect-leaders", "t", "--unclean", "--json", stdin="n\n", code=130)
    assert asked.stdout == ""
    assert "Go on?" in asked.stderr
    done = run("topic", "elect-leaders", "t", "--unclean", "--yes")
    assert "t-0: broker 1 " in done.stderr
    assert done.stdout == "elected t-0: broker 1 leads\n"


def test_nobody_is_asked_where_every_partition_has_a_leader(run: Run, script: ScriptedCluster) -> None:
    told = run("topic", "elect-leaders", "t", "--unclean")
    assert (told.stdout, told.stderr) == ("", "every partition has a leader: nothing was done\n")
    assert json.loads(run("topic", "elect-leaders", "t", "--unclean", "--json").stdout)["elected"] == []
    assert script.history == []


@pytest.mark.parametrize("unclean", [(), ("--unclean", "--yes")])
def test_a_partition_that_does_not_exist_is_not_elected(run: Run, unclean: tuple[str, ...]) -> None:
    told = run("topic", "elect-leaders", "t", *unclean, "-p", "7", code=1)
    assert "topic t has no partition 7" in told.stderr


def test_an_unclean_election_says_what_each_replica_has_and_what_to_restart(
    run: Run, script: ScriptedCluster
) -> None:
    """One of a live broker that was quarantined once "did not answer", and 100 records more were lost."""
    script.partitions["t", 0] = [1, 2, 3]
    script.leaders["t", 0] = -1
    longer = ListOffsetsPartitionResponse(
        error_code=ErrorCode.KAFKA_STORAGE_ERROR, leader_epoch=2, offset=550
    )
    unusable = ListOffsetsPartitionResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    old = ListOffsetsPartitionResponse(leader_epoch=1, offset=900)
    new = ListOffsetsPartitionResponse(leader_epoch=2, offset=450)

    def shown(*rows: ListOffsetsPartitionResponse) -> list[str]:
        left = list(rows)  # one socket plays them all: they are asked in order

        def answer(_request: ListOffsetsRequest, _version: int) -> ListOffsetsResponse:
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[left.pop(0)])])

        script.handlers[ListOffsetsRequest] = answer
        return run("topic", "elect-leaders", "t", "--unclean", stdin="n\n", code=130).stderr.splitlines()

    lines = shown(longer, new, old)
    assert lines[0] == (
        "t-0: broker 1 is alive, its replica is quarantined and ended at epoch 2, offset 550,"
        " broker 2 ends at epoch 2, offset 450, broker 3 ends at epoch 1, offset 900; broker 2 would lead"
    )
    assert lines[1].startswith("t-0: do not go on yet")
    assert "Restart broker 1, which may open it again, then elect again" in lines[1]
    lines = shown(unusable, new, old)
    assert lines[0].startswith("t-0: broker 1 is alive, its replica is quarantined or on a directory that")
    assert not any("do not go on" in line for line in lines)
    lines = shown(longer, longer, unusable)
    assert lines[0].endswith("; nobody can lead")
    assert "Restart broker 1 and broker 2" in lines[1]


def test_unregister_wants_a_broker_that_is_gone_and_empty(run: Run, script: ScriptedCluster) -> None:
    assert "broker 2 is alive" in run("cluster", "unregister", "2", code=1).stderr
    script.fail(3)
    refused = run("cluster", "unregister", "3", code=1).stderr
    assert "still has replicas of 2 partitions" in refused
    assert "headrace cluster drain 3" in refused
    script.fail(2)
    assert run("cluster", "unregister", "2").stdout == "unregistered broker 2\n"
    assert "no broker 9 is registered" in run("cluster", "unregister", "9", code=1).stderr


def test_drain_empties_a_broker_and_keeps_racks_apart(run: Run, script: ScriptedCluster) -> None:
    plan = json.loads(run("cluster", "drain", "1", "--plan", "--json").stdout)
    assert [(move["from"], move["to"]) for move in plan["moves"]] == [([1, 3], [2, 3]), ([3, 1], [3, 2])]
    assert script.history == []
    assert run("cluster", "drain", "1").stdout == "moved 2 partitions\n"
    assert script.partitions == {("t", 0): [2, 3], ("t", 1): [3, 2]}
    assert "nothing to move" in run("cluster", "drain", "1").stderr


def test_drain_of_leaders_moves_no_data(run: Run, script: ScriptedCluster) -> None:
    assert run("cluster", "drain", "1", "--leaders-only").stdout == "moved 1 partition\n"
    assert script.partitions == {("t", 0): [3, 1], ("t", 1): [3, 1]}
    assert script.leaders["t", 0] == 3


def test_drain_says_when_it_cannot(run: Run, script: ScriptedCluster) -> None:
    assert "there is no broker 9" in run("cluster", "drain", "9", code=1).stderr
    script.fail(2)
    refused = run("cluster", "drain", "1", code=1).stderr
    assert "need as many brokers" in refused
    assert "hint: start another broker first" in refused
    script.questions = 1000
    run("topic", "reassign", "t", "-r", "0=3,1", "--no-wait")
    assert "being moved already" in run("cluster", "rebalance", code=1).stderr


def test_rebalance_uses_a_broker_that_has_nothing(run: Run, script: ScriptedCluster) -> None:
    script.brokers[4] = "b"
    plan = run("cluster", "rebalance", "--plan").stdout
    assert "t-" in plan
    run("cluster", "rebalance", "--at-once", "1")
    counts = {b: sum(b in replicas for replicas in script.partitions.values()) for b in script.brokers}
    assert counts == {1: 1, 2: 1, 3: 1, 4: 1}


def test_reassign_to_named_brokers(run: Run, script: ScriptedCluster) -> None:
    run("topic", "reassign", "t", "--brokers", "2,3")
    assert {tuple(sorted(replicas)) for replicas in script.partitions.values()} == {(2, 3)}
    assert sorted(replicas[0] for replicas in script.partitions.values()) == [2, 3]
    run("topic", "reassign", "t", "--brokers", "1,2,3", "--replication-factor", "3")
    assert all(len(replicas) == 3 for replicas in script.partitions.values())
    assert "there is no broker 8" in run("topic", "reassign", "t", "--brokers", "1,8", code=1).stderr
    assert "need as many brokers" in run("topic", "reassign", "t", "--brokers", "1", code=1).stderr


def test_rebalance_gives_preferred_leaders_their_partitions_back(run: Run, script: ScriptedCluster) -> None:
    """The replicas are spread evenly, and one broker leads everything."""
    script.partitions.update(
        {("t", index): [[1, 2, 3], [2, 3, 1], [3, 1, 2]][index % 3] for index in range(7)}
    )
    script.isr = {partition: list(replicas) for partition, replicas in script.partitions.items()}
    script.leaders = dict.fromkeys(script.partitions, 1)
    script.leaders["t", 5] = 3
    planned = run("cluster", "rebalance", "--plan")
    assert planned.stderr == ""
    assert [line.split() for line in planned.stdout.splitlines()] == [
        ["PARTITION", "LEADER", "PREFERRED"],
        ["t-1", "1", "2"],
        ["t-2", "1", "3"],
        ["t-4", "1", "2"],
    ]
    assert script.history == []
    script.isr["t", 4] = [1]  # who is not in sync cannot lead
    assert "of 2 partitions" in run("cluster", "rebalance").stderr
    assert script.history == ["elect t-1", "elect t-2"]
