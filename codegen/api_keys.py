"""Writes the table of API keys, and of the first flexible version of each, which headers depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from codegen.model import snake_case
from codegen.versions import NONE, Versions

_TOP = """from __future__ import annotations

from enum import IntEnum
from typing import Final


class ApiKey(IntEnum):
"""
_MIDDLE = """

FIRST_FLEXIBLE: Final[dict[int, int]] = {
"""
_END = """}
\"\"\"Of the APIs that have a flexible version. From there on, headers and bodies carry tagged fields.\"\"\"
"""


class Api(NamedTuple):
    key: int
    name: str
    first_flexible: int | None


def parse_api(request: Mapping[str, Any]) -> Api:
    name = snake_case(request["name"].removesuffix("Request")).upper()
    flexible = Versions.parse(request.get("flexibleVersions", "none"))
    return Api(request["apiKey"], name, None if flexible == NONE else flexible.low)


def write_api_keys(apis: Sequence[Api], header: str) -> str:
    keys = "".join(f"    {each.name} = {each.key}\n" for each in apis)
    flexible = "".join(
        f"    ApiKey.{each.name}: {each.first_flexible},\n"
        for each in apis
        if each.first_flexible is not None
    )
    return header + _TOP + keys + _MIDDLE + flexible + _END
