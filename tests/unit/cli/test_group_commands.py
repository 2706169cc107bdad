"""The commands for groups, against scripted coordinators."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from headrace.cli import group_lag
from headrace.client.cluster import Cluster
from headrace.client.group_lag import GroupLag, PartitionLag, lags
from headrace.client.group_offsets import Committed
from headrace.client.offset_resets import PlannedReset, read_plan, write_plan
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.offset_commit_request import OffsetCommitRequest
from tests.unit.cli.serving import Run, runner, serving
from tests.unit.client.scripted_groups import ScriptedGroup, ScriptedGroups, ScriptedLog


@pytest.fixture
def script() -> Iterator[ScriptedGroups]:
    """Two groups at one coordinator, one at the other, and a topic of two partitions."""
    broker = ScriptedGroups()
    broker.topics = {"t": 2}
    broker.logs = {
        ("t", 0): ScriptedLog(first=10, stable=90, high_watermark=100, end=104, by_time=42),
        ("t", 1): ScriptedLog(first=0, stable=50, high_watermark=50, end=50),
    }
    broker.groups = {
        "idle2": ScriptedGroup(offsets={("t", 0): 40, ("t", 1): 50}),
        "busy4": ScriptedGroup(
            state="Stable", members={"m": [("t", 0), ("t", 1)]}, offsets={("t", 0): 5}, pending={("t", 0)}
        ),
        "server1": ScriptedGroup(
            kind="consumer",
            state="Reconciling",
            members={"a": [("t", 0)], "b": []},
            targets={"b": [("t", 1)]},
        ),
    }
    with serving(broker):
        yield broker


@pytest.fixture
def run(script: ScriptedGroups) -> Run:
    return runner(script.address)


def cells(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_list_asks_every_broker(run: Run) -> None:
    assert cells(run("group", "list").stdout) == [
        ["GROUP", "TYPE", "STATE", "PROTOCOL", "MEMBERS", "COORDINATOR"],
        ["busy4", "classic", "Stable", "range", "1", "0"],
        ["idle2", "classic", "Empty", "consumer", "0", "0"],
        ["server1", "consumer", "Reconciling", "uniform", "2", "1"],
    ]


def test_list_filters_and_speaks_json(run: Run, script: ScriptedGroups) -> None:
    told = json.loads(run("group", "list", "--state", "empty", "--json").stdout)
    assert told == [
        {
            "group": "idle2",
            "type": "classic",
            "state": "Empty",
            "protocol": "consumer",
            "members": 0,
            "coordinator": 0,
        }
    ]
    assert [line[0] for line in cells(run("group", "list", "--type", "consumer").stdout)] == [
        "GROUP",
        "server1",
    ]
    script.groups.clear()
    nothing = run("group", "list")
    assert nothing.stdout == ""
    assert "no groups" in nothing.stderr


def test_describe_shows_members_of_both_kinds(run: Run) -> None:
    lines = run("group", "describe", "busy4", "server1").stdout.splitlines()
    assert lines[0] == "busy4  type=classic  state=Stable  assignor=range  coordinator=0"
    assert lines[1] == "  members=1  partitions with committed offsets=1"
    assert lines[3].split() == ["m", "-", "client-m", "10.0.0.9", "t:0,1"]
    assert lines[5].endswith("assignor=uniform  coordinator=1  epoch=5 assignment-epoch=4")
    assert lines[7].split() == ["MEMBER", "INSTANCE", "CLIENT", "HOST", "EPOCH", "COMING", "PARTITIONS"]
    assert lines[9].split() == ["b", "instance-b", "client-b", "10.0.0.9", "4", "t:1", "-"]


def test_describe_as_json(run: Run) -> None:
    (told,) = json.loads(run("group", "describe", "server1", "--json").stdout)
    assert told["epoch"] == 5
    assert told["members"][1]["target"] == {"t": [1]}
    assert told["members"][1]["assigned"] == {}
    assert told["members"][0]["subscribed"] == ["t"]


def test_members_of_other_protocols_have_no_partitions(run: Run, script: ScriptedGroups) -> None:
    script.groups["connect"] = ScriptedGroup(state="Stable", protocol="connect", members={"w": []})
    assert "protocol=connect" in run("group", "describe", "connect").stdout


def test_what_does_not_exist_is_said_with_a_hint(run: Run) -> None:
    for command in (("describe",), ("lag",)):
        refused = run("group", *command, "nobody", code=1).stderr
        assert refused.splitlines() == [
            "error: group nobody does not exist",
            "hint: `headrace group list` shows what is there",
        ]


def test_lag_shows_what_holds_a_group_back(run: Run) -> None:
    lines = run("group", "lag", "busy4").stdout.splitlines()
    assert lines[0] == ("busy4  Stable  members 1  partitions 2  total lag 145, 50 of them without a commit")
    assert lines[2].split() == ["t", "0", "5", "90", "100", "104", "95", "m", "client-m", "10.0.0.9"]
    assert lines[3].split() == ["t", "1", "-", "-", "50", "50", "50", "m", "client-m", "10.0.0.9"]
    assert lines[4].startswith("t-0: an open transaction holds consumers of committed records at 90; ")
    assert lines[5] == "t-0: 5 records were removed before the group read them"
    assert lines[6] == "t-0: a transaction that is not over yet will commit another offset"


def test_lag_of_all_groups_that_have_offsets(run: Run, script: ScriptedGroups) -> None:
    script.groups["share7"] = ScriptedGroup(kind="share")
    script.groups["new"] = ScriptedGroup()
    lines = run("group", "lag", "--behind").stdout.splitlines()
    assert [line for line in lines if "total lag" in line] == [
        "busy4  Stable  members 1  partitions 2  total lag 145, 50 of them without a commit",
        "idle2  Empty  members 0  partitions 2  total lag 60",
        "server1  Reconciling  members 2  partitions 1  total lag 90, 90 of them without a commit",
    ]
    idle = lines[lines.index("idle2  Empty  members 0  partitions 2  total lag 60") :]
    assert idle[2].split()[:3] == ["t", "0", "40"]
    assert idle[3] == "nobody reads: the group has no members"


def test_lag_names_partitions_that_no_member_reads(run: Run, script: ScriptedGroups) -> None:
    script.groups["busy4"].members = {"m": [("t", 1)]}
    assert "no member reads t-0" in run("group", "lag", "busy4").stdout


def test_lag_as_json_and_of_one_topic(run: Run, script: ScriptedGroups) -> None:
    script.groups["idle2"].offsets["gone", 3] = 7
    (told,) = json.loads(run("group", "lag", "idle2", "--json").stdout)
    assert told["total_lag"] == 60
    gone, first, _ = told["partitions"]
    assert (gone["topic"], gone["committed"], gone["lag"], gone["end"]) == ("gone", 7, None, None)
    assert first["last_stable"] == 90
    assert first["metadata"] == "m"
    assert "gone-3: there is no leader to ask" in run("group", "lag", "idle2").stdout
    assert "gone" not in run("group", "lag", "idle2", "-t", "t").stdout


def test_watching_elsewhere_than_on_a_terminal_writes_looks(
    run: Run, script: ScriptedGroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    async def sleep(seconds: float) -> None:
        looks.append(seconds)
        script.groups["idle2"].offsets["t", 0] = 100
        if len(looks) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("headrace.cli.group_lag.asyncio.sleep", sleep)
    command = ("group", "lag", "idle2", "--watch", "--json", "--interval", "0.5")
    seen = run(*command, code=130).stdout.split()
    assert [json.loads(line)["groups"][0]["total_lag"] for line in seen] == [60, 0]
    assert looks == [0.5, 0.5]


def test_rates_need_two_looks() -> None:
    def look(offset: int | None) -> GroupLag:
        committed = None if offset is None else Committed(offset, -1, "")
        return GroupLag("g", None, [PartitionLag(TopicPartition("t", 0), committed, None, None)])

    key = ("g", TopicPartition("t", 0))
    assert group_lag.rates([], [look(5)], 2.0) == {}
    assert group_lag.rates([look(None)], [look(5)], 2.0) == {}
    assert group_lag.rates([look(5)], [look(25)], 2.0) == {key: 10.0}


def test_the_live_view_draws_rates_and_reasons(script: ScriptedGroups) -> None:
    async def look() -> list[GroupLag]:
        async with Cluster(script.address) as cluster:
            return await lags(cluster, ["idle2"])

    seen = asyncio.run(look())
    drawn = io.StringIO()
    console = Console(width=160, file=drawn)
    console.print(group_lag.drawing(seen, {("idle2", TopicPartition("t", 0)): 0.0}, behind=True))
    text = drawn.getvalue()
    assert "idle2  Empty" in text
    assert "0/s" in text
    assert "nobody reads" in text


# --- resets -----------------------------------------------------------------------------------------------


def test_a_reset_is_a_plan_until_it_is_executed(run: Run, script: ScriptedGroups) -> None:
    plan = run("group", "reset", "idle2", "--to-earliest")
    assert cells(plan.stdout) == [
        ["TOPIC", "PARTITION", "COMMITTED", "NEW", "CHANGE", "FIRST", "END", "NEW-LAG"],
        ["t", "0", "40", "10", "-30", "10", "100", "90"],
        ["t", "1", "50", "0", "-50", "0", "50", "50"],
    ]
    assert "nothing was changed" in plan.stderr
    assert script.seen(OffsetCommitRequest) == []
    done = run("group", "reset", "idle2", "--to-earliest", "--execute")
    assert done.stdout == plan.stdout
    assert done.stderr == "reset idle2: 2 partitions\n"
    assert script.groups["idle2"].offsets == {("t", 0): 10, ("t", 1): 0}


@pytest.mark.parametrize(
    ("target", "offsets"),
    [
        (("--to-latest",), {("t", 0): 100, ("t", 1): 50}),
        (("--to-offset", "45"), {("t", 0): 45, ("t", 1): 45}),
        (("--to-offset", "0"), {("t", 0): 10, ("t", 1): 0}),
        (("--to-offset", "99999"), {("t", 0): 100, ("t", 1): 50}),
        (("--to-current",), {("t", 0): 40, ("t", 1): 50}),
        (("--shift-by", "-8"), {("t", 0): 32, ("t", 1): 42}),
        (("--shift-by", "8"), {("t", 0): 48, ("t", 1): 50}),
        (("--to-datetime", "2026-01-01T00:00"), {("t", 0): 42, ("t", 1): 50}),
        (("--by-duration", "PT1H"), {("t", 0): 42, ("t", 1): 50}),
        (("--to-offset", "11", "-t", "t:0"), {("t", 0): 11, ("t", 1): 50}),
    ],
)
def test_where_offsets_can_go(
    run: Run, script: ScriptedGroups, target: tuple[str, ...], offsets: dict[tuple[str, int], int]
) -> None:
    run("group", "reset", "idle2", *target, "--execute")
    assert script.groups["idle2"].offsets == offsets


def test_an_offset_outside_of_the_log_is_said(run: Run) -> None:
    said = run("group", "reset", "idle2", "--to-offset", "3").stderr
    assert "t-0: 3 is outside of the log, so 10 is taken" in said
    assert "t-1" not in said


def test_a_plan_goes_to_a_file_and_comes_back(run: Run, script: ScriptedGroups, tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    run("group", "reset", "idle2", "--to-current", "--to-file", str(file))
    assert file.read_text() == "t,0,40\nt,1,50\n"
    run("group", "reset", "idle2", "--to-earliest", "--execute")
    run("group", "reset", "idle2", "--from-file", str(file), "-t", "t:0", "--execute")
    assert script.groups["idle2"].offsets == {("t", 0): 40, ("t", 1): 0}
    # As Kafka's tool writes it for several groups.
    file.write_text("other,t,0,77\nidle2,t,1,33\n")
    told = json.loads(run("group", "reset", "idle2", "--from-file", str(file), "--json").stdout)
    assert told == {
        "group": "idle2",
        "executed": False,
        "offsets": [
            {"topic": "t", "partition": 1, "committed": 0, "new": 33, "asked": 33, "first": 0, "end": 50}
        ],
    }


def test_names_of_groups_with_commas_and_quotes_survive_a_file() -> None:
    plan = [PlannedReset(TopicPartition("t", 3), 1, 2, 0, 9, 2)]
    groups = {'a,"b"': plan, "c d": plan}
    file = io.StringIO()
    write_plan(file, groups)
    for name in groups:
        assert read_plan(file.getvalue().splitlines(), name) == {TopicPartition("t", 3): 2}


@pytest.mark.parametrize("text", ["t,0\n", "t,x,1\n", "t,0,-4\n", ",0,1\n", "other,t,0,5\n", ""])
def test_a_file_that_is_no_plan_is_refused(run: Run, tmp_path: Path, text: str) -> None:
    file = tmp_path / "plan.csv"
    file.write_text(text)
    assert "error: " in run("group", "reset", "idle2", "--from-file", str(file), code=1).stderr


def test_a_group_with_members_is_not_reset(run: Run, script: ScriptedGroups) -> None:
    refused = run("group", "reset", "busy4", "--to-latest", "--execute", code=1).stderr
    assert "group busy4 is Stable with 1 members (client-m on 10.0.0.9)" in refused
    assert "hint: stop them" in refused
    assert script.seen(OffsetCommitRequest) == []


def test_a_member_that_comes_between_plan_and_commit_stops_the_reset(
    run: Run, script: ScriptedGroups
) -> None:
    answer = script.handlers[OffsetCommitRequest]

    def join_first(request: OffsetCommitRequest, version: int) -> object:
        script.groups["idle2"].members["late"] = []
        return answer(request, version)

    script.handlers[OffsetCommitRequest] = join_first  # type: ignore[assignment]  # it does return an answer
    refused = run("group", "reset", "idle2", "--to-latest", "--execute", code=1).stderr
    assert "error: group idle2 has members" in refused
    assert script.groups["idle2"].offsets["t", 0] == 40


def test_offsets_for_a_group_that_does_not_exist_yet(run: Run, script: ScriptedGroups) -> None:
    assert "has committed nothing" in run("group", "reset", "new", "--to-latest", code=1).stderr
    plan = run("group", "reset", "new", "--to-latest", "-t", "t:1")
    assert "group new does not exist yet" in plan.stderr
    run("group", "reset", "new", "--to-latest", "-t", "t:1", "--execute")
    assert script.groups["new"].offsets == {("t", 1): 50}
    refused = run("group", "reset", "new", "--shift-by", "1", "-t", "t", code=1).stderr
    assert "committed nothing in t-0, so there is nothing to shift" in refused


@pytest.mark.parametrize(
    ("args", "code", "complaint"),
    [
        ((), 2, "say where to, with one of --to-offset"),
        (("--to-latest", "--to-earliest"), 2, "say where to"),
        (("--to-offset", "-1"), 2, "--to-offset"),
        (("--by-duration", "soon"), 2, "not a duration"),
        (("--to-datetime", "soon"), 1, "not a time"),
        (("--to-latest", "-t", "t:x"), 2, "not a topic"),
        (("--to-latest", "-t", "t:7"), 1, "no partition 7"),
        (("--to-latest", "-t", "absent"), 1, "topic absent does not exist"),
    ],
)
def test_what_a_reset_does_not_understand(run: Run, args: tuple[str, ...], code: int, complaint: str) -> None:
    assert complaint in run("group", "reset", "idle2", *args, code=code).stderr


# --- ends -------------------------------------------------------------------------------------------------


def test_delete_goes_on_past_those_that_are_kept(run: Run, script: ScriptedGroups) -> None:
    result = run("group", "delete", "busy4", "nobody", "idle2", code=1)
    assert result.stdout == "deleted idle2\n"
    assert result.stderr.splitlines()[:2] == [
        "error: group busy4 has members",
        "error: group nobody does not exist",
    ]
    assert list(script.groups) == ["busy4", "server1"]
    assert run("group", "delete", "nobody", "--if-exists", "--json").stdout.split() == [
        "{",
        '"deleted":',
        "[],",
        '"refused":',
        "{}",
        "}",
    ]


def test_a_deleted_group_is_not_asked_about_again(run: Run, script: ScriptedGroups) -> None:
    script.groups["idle6"] = ScriptedGroup()
    # The first is deleted, the coordinator of the second moves meanwhile.
    script.refuse = [0, 0, ErrorCode.NOT_COORDINATOR]
    assert run("group", "delete", "idle2", "idle6").stdout == "deleted idle2\ndeleted idle6\n"


def test_delete_offsets(run: Run, script: ScriptedGroups) -> None:
    assert run("group", "delete-offsets", "idle2", "-t", "t:1").stdout == "deleted t-1\n"
    assert script.groups["idle2"].offsets == {("t", 0): 40}
    script.groups["idle2"].offsets["gone", 3] = 7
    assert run("group", "delete-offsets", "idle2", "-t", "gone").stdout == "deleted gone-3\n"
    refused = run("group", "delete-offsets", "busy4", "-t", "t", code=1).stderr
    assert "members of the group are subscribed to t-0" in refused
    assert "does not exist" in run("group", "delete-offsets", "idle2", "-t", "nowhere", code=1).stderr
    assert "committed nothing there" in run("group", "delete-offsets", "server1", "-t", "t").stderr
