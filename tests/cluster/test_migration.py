"""An Apache Kafka under load becomes Headrace, while the command of each step is killed and run again."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.migrated import run


def test_apache_kafka_under_load_becomes_headrace_though_each_step_is_killed(tmp_path: Path) -> None:
    said = run(tmp_path, brokers=1, seed=1, kill=True, rate=60, settle=1)
    assert "each once" in said
    assert "killed after" in said
