"""Says at the end how much was compared."""

from __future__ import annotations

import pytest

COMPARED: pytest.StashKey[str] = pytest.StashKey()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    del exitstatus
    if (compared := config.stash.get(COMPARED, None)) is not None:
        terminalreporter.write_line(f"oracle: {compared}")
