"""Without the extra a sentence says what to install, and nothing else needs it."""

from __future__ import annotations

import subprocess
import sys

NO_PYARROW = "import sys; sys.modules['pyarrow'] = None; "


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", NO_PYARROW + code], capture_output=True, text=True, timeout=60
    )


def test_it_is_said() -> None:
    done = run("from headrace.arrow import read_topic")
    assert "pyarrow is not installed" in done.stderr


def test_commands_need_none() -> None:
    code = "import headrace.arrow, headrace.cli.main, headrace.cli.tier, headrace.client.consumer"
    assert run(code).returncode == 0
