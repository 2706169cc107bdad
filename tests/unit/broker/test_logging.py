from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from headrace.broker.runtime.logging import configure, get_logger
from headrace.core.errors import ConfigError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    loggers = [logging.getLogger("headrace"), logging.getLogger("asyncio")]
    before = [(logger.level, logger.propagate, list(logger.handlers)) for logger in loggers]
    yield
    for logger, (level, propagate, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.propagate = propagate
        logger.handlers = handlers


def test_events_are_json_lines_with_their_fields() -> None:
    out = io.StringIO()
    configure(out, {})
    get_logger("headrace.broker").info("ready", port=9092, note="a\nb")
    (line,) = out.getvalue().splitlines()
    event = json.loads(line)
    assert event.pop("timestamp").endswith("Z")
    assert event == {
        "event": "ready",
        "level": "info",
        "logger": "headrace.broker",
        "port": 9092,
        "note": "a\nb",
    }


def test_exceptions_and_values_that_json_does_not_know() -> None:
    out = io.StringIO()
    configure(out, {})
    try:
        raise ValueError("broken")
    except ValueError:
        get_logger("headrace.log").exception("failed", path={1})
    event = json.loads(out.getvalue())
    assert "ValueError: broken" in event["exception"]
    assert (event["level"], event["path"]) == ("error", "{1}")


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_traceback_shows_no_values(stream: type[io.StringIO]) -> None:
    """They may be passwords: of whoever was served when something failed."""
    out = stream()
    configure(out, {})

    def fail(password: str) -> None:
        raise ValueError(f"{len(password)} letters")

    try:
        fail("canary-" + "a1f4")
    except ValueError as error:
        get_logger("headrace.broker").error("request failed", error=repr(error), exc_info=error)
    assert "fail(" in out.getvalue()
    assert "11 letters" in out.getvalue()
    assert "canary-a1f4" not in out.getvalue()


def test_the_standard_librarys_loggers_come_out_the_same_way() -> None:
    out = io.StringIO()
    configure(out, {})
    logging.getLogger("headrace.log.manager").warning("slow by %d ms", 7, extra={"disk": "a"})
    logging.getLogger("asyncio").warning("took long")
    first, second = map(json.loads, out.getvalue().splitlines())
    assert (first["event"], first["disk"], first["logger"]) == ("slow by 7 ms", "a", "headrace.log.manager")
    assert second["event"] == "took long"


def test_a_terminal_gets_colour_and_no_json() -> None:
    out = Terminal()
    configure(out, {})
    get_logger("headrace.broker").warning("careful", disk="full")
    assert "\x1b[" in out.getvalue()
    assert "careful" in out.getvalue()
    assert not out.getvalue().startswith("{")


def test_level_by_the_environment() -> None:
    out = io.StringIO()
    configure(out, {"HEADRACE_LOG_LEVEL": "Warning"})
    log = get_logger("headrace.broker")
    log.info("quiet")
    log.warning("loud")
    assert [json.loads(line)["event"] for line in out.getvalue().splitlines()] == ["loud"]
    with pytest.raises(ConfigError, match="HEADRACE_LOG_LEVEL=loud: use one of debug, info"):
        configure(out, {"HEADRACE_LOG_LEVEL": "loud"})


def test_configuring_twice_does_not_say_things_twice() -> None:
    out = io.StringIO()
    configure(out, {})
    configure(out, {})
    get_logger("headrace.broker").info("once")
    assert len(out.getvalue().splitlines()) == 1


def test_an_embedding_program_sees_events_and_nothing_is_printed(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO, logger="headrace"):
        get_logger("headrace.embedded").info("ready", port=1)
    (record,) = caplog.records
    assert isinstance(record.msg, dict)
    assert (record.msg["event"], record.msg["port"]) == ("ready", 1)
    assert capsys.readouterr() == ("", "")


def test_a_logger_does_not_load_rich() -> None:
    """It would cost a fifth of the time that a broker may take to start."""
    code = (
        "import sys; from headrace.broker.runtime.logging import configure, get_logger; configure(); "
        "get_logger('headrace.x').info('ready'); "
        "assert 'rich' not in sys.modules; import rich.console; print('loaded later')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "loaded later\n"), done.stderr


def test_one_of_several_brokers_says_who_it_is() -> None:
    out = io.StringIO()
    configure(out, {"HEADRACE_LOG_BROKER": "2"})
    get_logger("headrace.broker").info("ready")
    assert list(json.loads(out.getvalue()).items())[:2] == [("broker", 2), ("event", "ready")]
