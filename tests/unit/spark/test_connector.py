"""What readers give to Spark's Kafka connector."""

from __future__ import annotations

from headrace.spark.connector import reader_settings


def test_a_task_does_not_wait_at_the_end_of_a_log_and_reads_what_is_committed() -> None:
    assert reader_settings({"bootstrap.servers": "a:1"}) == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.fetch.max.wait.ms": "10",
        "kafka.isolation.level": "read_committed",
    }


def test_what_the_user_says_holds() -> None:
    own = {"fetch.max.wait.ms": "200", "isolation.level": "read_uncommitted"}
    assert reader_settings(own) == {f"kafka.{name}": value for name, value in own.items()}
