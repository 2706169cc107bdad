"""What docs/pipeline/source.md and the README show of topics as frames can be run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.broker_process import BrokerProcess
from tests.spark.connector.topics import Sent, create, send
from tests.spark.source.queries import committed

_ROOT = Path(__file__).parents[3]
_PAGE = _ROOT / "docs" / "pipeline" / "source.md"
_SOME_TIME_YESTERDAY = 1_794_650_000_000
"""As the page has it: 2026-11-14."""


def test_the_page_can_be_run(spark: SparkSession, headrace: BrokerProcess, tmp_path: Path) -> None:
    create(headrace.bootstrap, "orders")
    order = '{"id":1,"customer":"a","total":2.5}'
    today = _SOME_TIME_YESTERDAY + 24 * 3600 * 1000
    old = Sent(order, timestamp_ms=_SOME_TIME_YESTERDAY)
    send(headrace.bootstrap, "orders", [old, Sent(order, timestamp_ms=today), Sent("?", timestamp_ms=today)])
    program = "\n".join(re.findall(r"```python\n(.*?)```", _PAGE.read_text(), re.DOTALL))
    program = program.replace("127.0.0.1:9092", headrace.bootstrap).replace("/data/", f"{tmp_path}/")
    # Where there are no users, the file of one says no more than where the brokers are.
    own = tmp_path / "alice.properties"
    own.write_text(f"bootstrap.servers={headrace.bootstrap}\n")
    program = program.replace('"alice.properties"', repr(str(own)))
    names: dict[str, object] = {"spark": spark}
    exec(program.replace("spark = session()\n", ""), names)
    assert spark.read.parquet(str(tmp_path / "orders")).count() == 2
    assert committed(headrace.bootstrap, "billing", "orders", 1) == [3]
    yesterday = names["yesterday"]
    assert [row.total for row in yesterday.collect()] == [2.5]  # type: ignore[attr-defined]  # the page's own


def test_the_readme_can_be_run(
    spark: SparkSession, headrace: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    create(headrace.bootstrap, "readme-orders")
    values = ['{"id":1,"customer":"ann","total":2.5}', '{"id":2,"customer":"ann","total":4.0}']
    send(headrace.bootstrap, "readme-orders", [Sent(value) for value in values])
    blocks = re.findall(r"```python\n(.*?)```", (_ROOT / "README.md").read_text(), re.DOTALL)
    (program,) = [block for block in blocks if "headrace.spark" in block]
    program = program.replace("127.0.0.1:9092", headrace.bootstrap).replace('"orders"', '"readme-orders"')
    exec(program.replace("spark = session()\n", ""), {"spark": spark})
    assert re.search(r"ann\|\s+6.5\|", capsys.readouterr().out)
