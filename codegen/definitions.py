"""Reads message definitions out of a jar: JSON with comment lines."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from codegen.api_keys import Api, parse_api
from codegen.model import Message, parse_message

_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_FOLDERS = ("common/message/", "common/metadata/")


class Definitions(NamedTuple):
    messages: list[Message]
    """Those that have a version, in order of name."""
    apis: list[Api]
    """All, in order of key."""


def read_jar(path: Path) -> Definitions:
    messages = []
    apis = []
    with zipfile.ZipFile(path) as jar:
        for name in jar.namelist():
            if name.startswith(_FOLDERS) and name.endswith(".json"):
                definition = _parse(jar.read(name).decode())
                # Kafka keeps the definitions of messages that it no longer speaks, without any version.
                if definition["validVersions"] != "none":
                    messages.append(parse_message(definition))
                if definition["type"] == "request":
                    apis.append(parse_api(definition))
    return Definitions(sorted(messages, key=lambda message: message.name), sorted(apis))


def _parse(text: str) -> dict[str, Any]:
    definition: dict[str, Any] = json.loads(_COMMENT.sub("", text))
    return definition
