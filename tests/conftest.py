"""Options that all tests share."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import loop_sentinel
from tests.broker_process import BrokerProcess
from tests.host import Processors
from tests.interrupts import listen_to_interrupts

# How long an example takes depends on what else the machine does. Tests have timeouts of their own.
# A build draws the same examples each time: what it finds is of the change. `poe explore` draws new ones.
_SLOW = (HealthCheck.too_slow,)
settings.register_profile(
    "headrace", deadline=None, derandomize=True, print_blob=True, suppress_health_check=_SLOW
)
settings.register_profile("explore", deadline=None, print_blob=True, suppress_health_check=_SLOW)
settings.load_profile("headrace")

_PROCESSORS = Processors.now()
SAID_LINES = 40


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--target",
        choices=("headrace", "kafka"),
        default=os.environ.get("HEADRACE_TARGET", "headrace"),
        help="which broker the compatibility suite runs against; kafka proves that the suite itself is right",
    )


def pytest_configure(config: pytest.Config) -> None:
    listen_to_interrupts()
    # Third-party clients are test subjects: what their own modules do is not ours to mend.
    for module in ("kafka", "aiokafka", "confluent_kafka"):
        for category in ("DeprecationWarning", "ResourceWarning", "PendingDeprecationWarning"):
            config.addinivalue_line("filterwarnings", f"ignore::{category}:{module}(\\.|$)")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    share = Processors.now().stolen_since(_PROCESSORS)
    terminalreporter.write_line(f"the host took {share:.0%} of the processors meanwhile")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What the brokers of a failed test have said stands in its report: the machine may be gone tomorrow."""
    report = yield
    if report.when == "call" and report.failed:
        for output in sorted(_outputs(getattr(item, "funcargs", {}))):
            said = output.read_text(errors="replace").splitlines()[-SAID_LINES:]
            report.sections.append((f"the end of {output}", "\n".join(said)))
    return report


def _outputs(fixtures: Mapping[str, object]) -> set[Path]:
    """Of its own brokers, and of those that it shares with others."""
    directory = fixtures.get("tmp_path")
    found = set(directory.rglob("broker.out")) if isinstance(directory, Path) else set()
    return found | {
        each.output for each in fixtures.values() if isinstance(each, BrokerProcess) and each.output.exists()
    }


@pytest.fixture(scope="session")
def sentinel() -> Iterator[loop_sentinel.Sentinel]:
    with loop_sentinel.installed() as sentinel:
        yield sentinel


@pytest.fixture(autouse=True)
def loop_waits_for_nobody(sentinel: loop_sentinel.Sentinel) -> Iterator[None]:
    """Every broker of every test in this process keeps the loop's completion."""
    sentinel.found.clear()
    sentinel.turn_seconds = loop_sentinel.HUNG_SECONDS
    yield
    found = list(dict.fromkeys(sentinel.found))
    sentinel.found.clear()
    assert not found, "\n".join(found)


@pytest.fixture
def short_turns(sentinel: loop_sentinel.Sentinel, loop_waits_for_nobody: None) -> None:
    """No turn of a broker's loop may take longer than 50 ms of its processor."""
    sentinel.turn_seconds = loop_sentinel.TURN_SECONDS
