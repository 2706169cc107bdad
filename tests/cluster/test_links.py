"""Apache Kafka's topic copied by a cluster of three, while brokers die on both sides."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.linked import run


def test_a_copy_of_apache_kafkas_topic_survives_deaths_on_both_sides(tmp_path: Path) -> None:
    assert "the same on every replica" in run(tmp_path, rounds=2, seed=1, from_kafka=True)
