"""A batch that fails is never taken for one that was loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from headrace.spark.lake.job import LoadFailed
from headrace.spark.lake.tables.opening import TablesElsewhere, open_table
from tests.spark.lake.conftest import LakeUnderTest


@pytest.mark.parametrize("table_format", ["parquet"], indirect=True)
def test_an_error_of_the_jvm_fails_the_load(lake: LakeUnderTest, new_topic: Callable[[], str]) -> None:
    """Its calls are so many that Spark, left alone with them, ends the query without an error."""
    topic = new_topic()
    lake.produce(topic, [b"1"])
    config = lake.config(f'[[topics]]\nname = "{topic}"')
    in_the_way = lake.directory / "lake" / topic / "_headrace" / "staging"
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("a file where a directory is to be")
    with pytest.raises(LoadFailed, match=r"BatchFailed: .*staging"):
        lake.load(config)
    in_the_way.unlink()
    lake.load(config)
    assert [row.offset for row in lake.rows(config, topic)] == [0]


@pytest.mark.parametrize("table_format", ["iceberg"], indirect=True)
def test_a_session_whose_tables_are_elsewhere_is_refused(lake: LakeUnderTest) -> None:
    """It would make new ones there, and load into them what the old ones lack from then on."""
    config = replace(lake.config('[[topics]]\nname = "t"'), location="file:///somewhere/else")
    with pytest.raises(TablesElsewhere, match="in /somewhere/else, and this session in /"):
        open_table(lake.spark, config, "t")
