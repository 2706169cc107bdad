"""A simulation has a clock of its own, and runs beside whatever else the machine does."""

from __future__ import annotations

from pathlib import Path

import pytest

_HERE = Path(__file__).parent
#: Against a simulation that never ends. Its steps are counted elsewhere; seconds say how busy the machine is.
_SECONDS = 7200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.timeout(_SECONDS))
