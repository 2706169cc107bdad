"""Tests that run in the background of a script interrupt processes, too."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
# Short sleeps: a signal between the print and a long one would be heard only after it.
SLEEPER = "import time; print('up', flush=True)\nfor _ in range(600): time.sleep(0.1)"
STARTS_ONE = f"""
import signal, subprocess, sys
assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN, "the shell was to see to that"
from tests.interrupts import listen_to_interrupts
listen_to_interrupts()
with subprocess.Popen([sys.executable, "-c", {SLEEPER!r}], stdout=subprocess.PIPE) as process:
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    try:
        print(process.wait(20))
    finally:
        process.kill()
"""


def test_what_the_tests_start_listens_even_if_a_shell_made_them_deaf() -> None:
    command = ["sh", "-c", 'trap \'\' INT; exec "$0" -c "$1"', sys.executable, STARTS_ONE]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == str(-signal.SIGINT), done.stderr


def test_this_run_listens() -> None:
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
