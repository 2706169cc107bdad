"""Which build runs."""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES

import pytest

from headrace import __version__
from headrace.core import build, timers
from headrace.core.build import Build, is_extension, this_build


@pytest.mark.parametrize(
    ("origin", "is_one"),
    [
        (f"/somewhere/timers{EXTENSION_SUFFIXES[0]}", True),
        ("/somewhere/timers.py", False),
        ("/somewhere/timers.pyc", False),
        (None, False),
    ],
)
def test_an_extension_is_told_by_its_name(origin: str | None, is_one: bool) -> None:
    assert is_extension(origin) is is_one


def test_it_is_said_in_words() -> None:
    assert str(Build("1.2.3", True, "3.14.0")) == "1.2.3 (compiled, Python 3.14.0)"
    assert str(Build("1.2.3", False, "3.11.7")) == "1.2.3 (plain, Python 3.11.7)"


def test_what_is_found_is_what_runs() -> None:
    """Also where these tests run against a compiled wheel."""
    assert timers.__name__ == build.COMPILED_MODULE
    python = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    assert this_build() == Build(__version__, is_extension(timers.__file__), python)
