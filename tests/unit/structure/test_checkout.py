"""What is in the repository works on every machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
_LINK = "120000"


@pytest.mark.skipif(not (CHECKOUT / ".git").exists(), reason="there is no repository to look into")
def test_no_link_is_in_the_repository() -> None:
    """A link to a folder of one machine, such as .cache, takes the place of that folder on another: git
    replaces what it ignores without asking."""
    said = subprocess.run(
        ["git", "ls-files", "--stage"], cwd=CHECKOUT, check=True, capture_output=True, text=True
    ).stdout
    entries = [line.split(maxsplit=3) for line in said.splitlines()]
    assert len(entries) > 1000
    assert [path for mode, _, _, path in entries if mode == _LINK] == []
