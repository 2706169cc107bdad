"""Says at the end how much was compared."""

from __future__ import annotations

import pytest

COMPARED: pytest.StashKey[list[str]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[COMPARED] = []


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    del exitstatus
    for compared in config.stash.get(COMPARED, []):
        terminalreporter.write_line(f"oracle: {compared}")
