"""`headrace tier check` against a real S3 server, and against stores that must not be used."""

from __future__ import annotations

import json

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.core.ports_objects import Listing
from headrace.objects import opening
from tests.unit.objects.unfit_stores import IgnoresConditions


def check(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["tier", "check", *arguments], prog_name="headrace")


SMALL = ("--deadline", "240", "--writers", "8", "--rounds", "2")
"""A race of 32 takes this server some seconds, in which it waits for locks of its own."""


def test_a_real_server_is_fit(bucket: str) -> None:
    done = check(bucket, *SMALL)
    assert done.exit_code == 0, done.stderr
    assert f"{bucket} can hold history: one winner in each of 4 races" in done.stdout
    assert [line.split()[-3:] for line in done.stdout.splitlines()[1:3]] == [["2", "1", "1"]] * 2
    opened = opening.open_bucket(bucket)
    left = opened.list("", deadline_seconds=60)
    opened.close()
    assert left == Listing([])


def test_as_json(bucket: str) -> None:
    done = check(bucket, "--deadline", "240", "--rounds", "1", "--json")
    document = json.loads(done.stdout)
    assert document["fit"] is True
    assert [each["winners"] for each in document["races"]] == [1, 1]
    assert document["findings"] == []


def test_an_unfit_store_ends_with_an_error_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bucket(IgnoresConditions):
        def close(self) -> None:
            pass

    monkeypatch.setattr(opening, "open_bucket", lambda *_, **__: Bucket())
    done = check("s3://bucket")
    assert done.exit_code == 1
    assert "error: the store ignores If-Match: " in done.stderr
    assert "hint: two brokers could both believe" in done.stderr
    assert "s3://bucket cannot hold history as it is" in done.stderr


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    done = check("s3://bucket", "--endpoint", "http://127.0.0.1:1", "--deadline", "60")
    assert done.exit_code == 1
    assert "error: the store cannot be written to: " in done.stderr
    assert "hint: check the URL, --endpoint, --region and the network" in done.stderr


def test_what_is_no_bucket() -> None:
    done = check("bucket")
    assert done.exit_code == 1
    assert "error: bucket is not the URL of a bucket: write s3://BUCKET/PREFIX" in done.stderr


def test_schemes_are_completed() -> None:
    shell = ShellComplete(cli, {}, "headrace", "_HEADRACE_COMPLETE")
    assert [item.value for item in shell.get_completions(["tier", "check"], "s")] == ["s3://"]
    assert [item.value for item in shell.get_completions(["tier"], "")] == ["check", "gc", "scrub", "status"]
