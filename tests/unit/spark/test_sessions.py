"""What the driver of a session is told, beside what the user tells it."""

from __future__ import annotations

from pathlib import Path

from headrace.spark.sessions import quiet, settings


def test_a_driver_has_room_for_deep_plans_and_limits_for_avro() -> None:
    options = settings(packages=True)["spark.driver.extraJavaOptions"].split()
    assert "-Xss4m" in options
    assert "-Dorg.apache.avro.limits.bytes.maxLength=67108864" in options


def test_a_driver_is_quiet_by_a_file_that_is_there() -> None:
    name, _, file = quiet("-Xss8m", {}).partition("=file://")
    assert name == "-Dlog4j2.configurationFile"
    assert Path(file).read_text().startswith("# What a driver prints")


def test_whoever_has_settled_what_is_logged_is_left_alone(tmp_path: Path) -> None:
    assert quiet("-Dlog4j2.configurationFile=mine.xml", {}) == ""
    assert quiet("", {"SPARK_SUBMIT_OPTS": "-Dlog4j.configurationFile=mine.xml"}) == ""
    conf = tmp_path / "conf"
    conf.mkdir()
    for environment in ({"SPARK_CONF_DIR": str(conf)}, {"SPARK_HOME": str(tmp_path)}):
        assert quiet("", environment)
        (conf / "log4j2.properties").touch()
        assert quiet("", environment) == ""
        (conf / "log4j2.properties").unlink()
