"""`headrace tier scrub` against a real S3 server. What brokers wrote: tests/integration/test_tiering.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.core.ports_objects import ObjectStore
from headrace.objects import opening
from tests.unit.tier.scripted import PLACE
from tests.unit.tier.stored_history import listed, put, upload

RECORDS = ".log"


@pytest.fixture
def store(bucket: str) -> Iterator[ObjectStore]:
    """With a history of six segments."""
    opened = opening.open_bucket(bucket)
    upload(opened, 6, fold_above=4, fold_keeps=2)
    yield opened
    opened.close()


def scrub(*arguments: str | Path) -> Result:
    command = ["tier", "scrub", *map(str, arguments)]
    return CliRunner().invoke(cli, command, prog_name="headrace")


def keys(store: ObjectStore, ending: str = RECORDS) -> list[str]:
    return [each.key for each in listed(store) if each.key.endswith(ending)]


def test_tier_invariant_17_a_history_is_whole(bucket: str, store: ObjectStore) -> None:
    done = scrub(bucket)
    assert done.exit_code == 0, done.output
    assert ": whole, offsets 0 to 60, 6 segments, " in done.stdout
    assert f"{bucket} is whole: 1 partition" in done.stdout


def test_tier_invariant_17_what_is_damaged_or_missing_is_told_with_what_to_do(
    bucket: str, store: ObjectStore
) -> None:
    damaged, missing, longer = keys(store)[1:4]
    put(store, damaged, b"other bytes".ljust(180))
    store.delete(missing, deadline_seconds=60)
    put(store, longer, b"x" * 1000)
    put(store, f"{PLACE.folder.prefix}{7:020}-1-{'a' * 32}{RECORDS}", b"nobody names it")
    done = scrub(bucket, "--json")
    assert done.exit_code == 1
    (told,) = json.loads(done.stdout)["partitions"]
    found = {each["key"]: each for each in told["findings"]}
    assert {key: each["kind"] for key, each in found.items()} == {
        damaged: "damaged",
        missing: "missing",
        longer: "damaged",
    }
    assert "crc32c" in found[damaged]["problem"]
    assert "it has 1000 bytes, 180 were written" in found[longer]["problem"]
    assert "put it back from the bucket's versions" in found[missing]["next_step"]
    assert told["orphans"] == 1
    said = scrub(bucket)
    assert said.exit_code == 1
    assert f"  missing: {missing}: it is named, and is not there" in said.stdout
    assert "1 of 1 partition are not whole" in said.stderr


def test_a_scrub_that_was_cut_off_goes_on(
    bucket: str, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, keys(store)[0], b"other bytes".ljust(180))
    path = tmp_path / "scrub.json"
    read: list[str] = []

    class Cut(type(store)):  # type: ignore[misc]  # the real one
        def get_range(self, key: str, *arguments: int, **options: float) -> object:
            read.append(key)
            if len(read) == 4:
                raise KeyboardInterrupt
            return super().get_range(key, *arguments, **options)

    monkeypatch.setattr("headrace.objects.obstore_bucket.ObstoreBucket", Cut)
    assert scrub(bucket, "--progress", path).exit_code != 0
    again = scrub(bucket, "--progress", path, "--rate", "1MB")
    assert again.exit_code == 1
    assert f"  damaged: {keys(store)[0]}" in again.stdout
    assert [keys(store).index(key) for key in read] == [0, 1, 2, 3, 3, 4, 5]
    assert not path.exists()


def test_the_progress_of_another_scrub_is_refused(bucket: str, tmp_path: Path) -> None:
    path = tmp_path / "scrub.json"
    path.write_text(json.dumps({"version": 1, "bucket": "s3://other", "partitions": {}}))
    done = scrub(bucket, "--progress", path)
    assert done.exit_code == 1
    assert "is the progress of a scrub of s3://other" in done.stderr
    path.write_text("{}")
    assert "is not the progress of a scrub" in scrub(bucket, "--progress", path).stderr
