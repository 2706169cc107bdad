"""What the driver of a session is told, beside what the user tells it."""

from __future__ import annotations

from headrace.spark.session import settings


def test_a_driver_has_room_for_deep_plans_and_limits_for_avro() -> None:
    options = settings(packages=True)["spark.driver.extraJavaOptions"].split()
    assert "-Xss4m" in options
    assert "-Dorg.apache.avro.limits.bytes.maxLength=67108864" in options
