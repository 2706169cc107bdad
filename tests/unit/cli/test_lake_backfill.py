"""`headrace lake backfill`: what it wants to be told, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.lake_backfill import sentence, summary
from headrace.cli.main import cli
from headrace.client.errors import ClientFailure
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake.backfill.job import Backfilled
from headrace.spark.lake.backfill.places import place_of
from headrace.spark.lake.config import LakeConfig
from headrace.spark.segments.place import Bucket, Directories

DONE = Backfilled(
    topic="orders",
    table="orders",
    total_bytes=4_000_000,
    read_bytes=1_000_000,
    rows=12_000,
    files=2,
    written_bytes=2_500_000,
    steps=1,
    seconds=3.0,
)


@pytest.mark.parametrize(
    "arguments", [[], ["--tier", "s3://b", "--leave-rest"], ["--tier", "s3://b", "--files", "."]]
)
def test_one_place_is_named(arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, ["lake", "backfill", "orders", *arguments])
    assert result.exit_code == 2
    assert "--tier s3://BUCKET/PREFIX, or --files DIR" in result.output


def test_places_are_what_was_said(tmp_path: Path) -> None:
    config = LakeConfig(KafkaProperties({"bootstrap.servers": "127.0.0.1:1"}), ())
    assert place_of(config, "t", files=[tmp_path]) == Directories((str(tmp_path),))
    found = place_of(config, "t", tier="s3://b/p", cluster_id="c", topic_id="i", region="r")
    assert found == Bucket("s3://b/p", "c", "i", None, "r")
    with pytest.raises(ClientFailure, match="in a bucket or in directories"):
        place_of(config, "t")


def test_progress_is_in_bytes_that_are_known_before() -> None:
    assert sentence(DONE) == "orders: 1 of 4 MB read (25 %), 12,000 records in orders"
    assert "(0 %)" in sentence(Backfilled("orders", "orders"))


def test_the_summary_says_what_comes_next() -> None:
    assert summary(DONE).endswith("run it again, and it goes on where it was")
    whole = Backfilled(**{**vars(DONE), "complete": True, "ends": {1: 7, 0: 30}})
    assert summary(whole) == (
        "orders: 12,000 records of 1.0 MB loaded into orders in 3.0 s, 4,000 a second; 2 files of 2.5 MB in "
        "1 commit\n`headrace lake run` goes on at 0: 30, 1: 7"
    )
    nothing = Backfilled("orders", "orders", complete=True)
    assert (
        summary(nothing)
        == "orders: nothing more to load into orders\n`headrace lake run` begins at the start"
    )
