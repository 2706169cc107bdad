"""The packages that the pipeline needs, as the installed distribution says, and which versions will do."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from importlib import metadata
from typing import Final

EXTRA: Final = "spark"
INSTALL: Final = f"pip install 'headrace[{EXTRA}]'"
_Numbers = tuple[int, ...]
_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z0-9._-]+)\s*([^;]*?)\s*;\s*extra\s*==\s*['\"](\w+)['\"]\s*")
_CLAUSE: Final = re.compile(r"\s*(==|>=|<=|!=|<|>)\s*([0-9.]+)\s*")
_LEADING: Final = re.compile(r"\d+(\.\d+)*")
_COMPARE: Final[dict[str, Callable[[_Numbers, _Numbers], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


def wanted_packages() -> dict[str, str]:
    """Name and demand, such as `>=2.2,<3`, of each package that the extra names."""
    found = {}
    for line in metadata.requires("headrace") or ():
        said = _REQUIREMENT.fullmatch(line)
        if said is not None and said[3] == EXTRA:
            found[said[1]] = said[2]
    return found


def unmet(version: str, demand: str) -> str:
    """The clause of the demand that this version does not meet, or nothing."""
    have = _numbers(version)
    for clause in filter(None, demand.split(",")):
        said = _CLAUSE.fullmatch(clause)
        if said is None:
            raise ValueError(f"{clause!r} is not a clause that pyproject.toml should have for {EXTRA}")
        want = _numbers(said[2])
        length = max(len(have), len(want))
        if not _COMPARE[said[1]](_padded(have, length), _padded(want, length)):
            return clause.strip()
    return ""


def _numbers(version: str) -> _Numbers:
    """The leading numbers; what marks a pre-release or a build is left out."""
    leading = _LEADING.match(version)
    return tuple(map(int, leading[0].split("."))) if leading else ()


def _padded(numbers: _Numbers, length: int) -> _Numbers:
    return numbers + (0,) * (length - len(numbers))
