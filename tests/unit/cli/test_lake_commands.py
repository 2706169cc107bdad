"""`headrace lake`: what it says without brokers and without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from headrace.cli import lake_progress, lake_run, lake_status
from headrace.cli.main import cli
from headrace.spark.lake.batches import Batch, Done
from headrace.spark.lake.config import load
from headrace.spark.lake.progress import TopicProgress
from headrace.spark.lake.status import LakeStatus, PartitionStatus, TopicStatus
from tests.ports import own_port


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["lake", *arguments], prog_name="headrace")


def test_a_configuration_to_begin_with_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "lake.toml"
    assert run("init", str(path)).exit_code == 0
    assert load(path).format == "delta"
    again = run("init", str(path))
    assert again.exit_code == 1
    assert "exists" in again.output


def test_a_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "lake.toml"
    path.write_text('[kafka]\n"bootstrap.servers" = "a:1"\n[lake]\nformat = "dleta"\n')
    for command in (["run"], ["status"], ["replay", "a"], ["maintain"]):
        result = run(*command, "--config", str(path))
        assert result.exit_code == 1
        assert "lake.toml:4: lake.format: 'dleta' is not known; did you mean delta?" in result.output


@pytest.mark.parametrize("part", ["lake", "table"])
def test_a_file_that_is_not_utf_8_is_told_with_its_line(part: str, tmp_path: Path) -> None:
    path = tmp_path / "old.toml"
    path.write_bytes("# caf\u00e9\n".encode() + "[kafka] # caf\u00e9\n".encode("latin-1"))
    result = CliRunner().invoke(cli, [part, "status", "--config", str(path)])
    assert result.exit_code == 1
    assert f"error: {path}:2: byte 0xe9 is not UTF-8; save the file as UTF-8\n" in result.output


@pytest.mark.parametrize(
    ("part", "rest"),
    [
        ("lake", '[lake]\nlocation = "x"\n[[topics]]\nname = "a"\n'),
        ("table", '[store]\nlocation = "x"\n[[tables]]\ntopic = "a"\nkey = "string"\n'),
    ],
)
def test_brokers_that_are_away_are_named_in_the_file(part: str, rest: str, tmp_path: Path) -> None:
    path = tmp_path / "jobs.toml"
    path.write_text(f'[kafka]\n"bootstrap.servers" = "127.0.0.1:{own_port()}"\n{rest}')
    result = CliRunner().invoke(cli, [part, "status", "--config", str(path)])
    assert result.exit_code == 1
    assert result.output.splitlines()[1] == (
        f'hint: start one with `headrace up`, or change "bootstrap.servers" below [kafka] in {path}'
    )


def test_a_topic_without_a_rule_cannot_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "lake.toml"
    path.write_text('[kafka]\n"bootstrap.servers" = "a:1"\n[lake]\nlocation = "x"\n[[topics]]\nname = "a"\n')
    result = run("replay", "b", "--config", str(path))
    assert result.exit_code == 1
    assert "no rule for topic b" in result.output


def test_a_state_that_only_spark_reaches_says_so(tmp_path: Path) -> None:
    path = tmp_path / "lake.toml"
    path.write_text(
        '[kafka]\n"bootstrap.servers" = "a:1"\n[lake]\nlocation = "s3a://x"\n[[topics]]\nname = "a"\n'
    )
    result = run("status", "--config", str(path))
    assert "only Spark can read" in result.output


def topic_status(loaded: int | None, error: str | None = None) -> TopicStatus:
    partition = PartitionStatus(0, loaded, 10, 100)
    return TopicStatus("t", "t", (partition,), 3, 1234.5, 1_700_000_000_000, 1_700_000_000_000, error)


def test_status_counts_what_retention_has_left() -> None:
    assert (topic_status(None).loaded, topic_status(None).lag) == (0, 90)
    assert (topic_status(60).loaded, topic_status(60).lag) == (50, 40)
    assert topic_status(100).lag_ms(1_700_000_005_000) == 0
    assert topic_status(60).lag_ms(1_700_000_005_000) == 5_000
    shown = lake_status.row(topic_status(60), 1_700_000_005_000)
    assert shown == ("t", "t", 1, 3, 50, 40, "5s", "1,234/s", "2023-11-14T22:13:20+00:00")
    said = lake_status.sentences(LakeStatus((topic_status(60, "no"),), ("u",)))
    assert said == ["t: no", "named, and not there yet: u"]


def loaded(topic: str, *batches: Batch, reason: str | None = None) -> Done:
    done = Done(topic, topic)
    for batch in batches:
        done.add(batch)
    done.new.commonest_reason = reason
    return done


def test_a_run_tells_its_own_rows_and_why_records_are_dead_letters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = loaded("old")
    before.batches = [Batch(3, 11, 0, 100)]
    lake_run.print_done([before], as_json=False)
    assert capsys.readouterr().out == "nothing new in old\n"

    found = [before, loaded("new", Batch(0, 7, 0, 100, 4, 2), reason="not JSON: {")]
    lake_run.print_done(found, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["TOPIC", "TABLE", "BATCH", "NEW-ROWS", "DEAD-LETTERS", "RECORDS/S"]
    assert lines[1].split()[:5] == ["old", "old", "3", "0", "0"]
    assert lines[2].split()[:5] == ["new", "new", "0", "4", "2"]
    assert lines[3:] == [
        "new: 2 dead letters, most often because: not JSON: {",
        "  after a fix: headrace lake replay new",
    ]
    lake_run.print_done(found, as_json=True)
    assert json.loads(capsys.readouterr().out)[1]["new"]["dead_letters"] == 2

    lake_run.refuse_dead_letters([before])
    with pytest.raises(click.ClickException, match="2 dead letters"):
        lake_run.refuse_dead_letters(found)


def test_nothing_new_is_told_so() -> None:
    assert lake_progress.sentence([TopicProgress("a", 0, 0, 500.0, "done")], []) == "nothing new in 1 topic"


def test_one_line_says_it_all() -> None:
    topics = [
        TopicProgress("a", 1000, 2000, 500.0, "loading"),
        TopicProgress("b", 10, None, None, "trying again: x"),
    ]
    assert lake_progress.sentence(topics, ["c"]) == (
        "1,010 records of 2 topics loaded, 500 a second; trouble with b: `headrace lake status` says why; "
        "waiting for c to be created"
    )
