"""The examples of a page, and what stands before them in a comment.

<!-- run: skip: REASON -->      the next block is not run, is counted, and the reason is printed
<!-- run: slow -->              the next block needs Spark or several processes: `poe docs-run-spark`
<!-- run: prepare ... -->       a script that readers do not see: what a page takes for granted;
                                `prepare slow` only where slow blocks run, `prepare python` is Python
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

_PATTERN: Final = re.compile(
    r"<!-- run: (?P<word>skip|slow|prepare)\b(?P<rest>.*?)-->"
    r"|^(?P<indent>[ ]*)```(?P<language>[\w-]*)\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_TRANSCRIPT: Final = re.compile(r"\A\$ ")
_COMMAND: Final = re.compile(r"\A(?:headrace|kafka-[\w-]+\.sh|curl|uv|pip|python|systemctl) ")


class Kind(Enum):
    SHELL = "sh"
    PYTHON = "python"
    TRANSCRIPT = "$"
    """Commands after `$ `, and below each what it prints."""


class Block(NamedTuple):
    start: int
    end: int
    kind: Kind
    code: str
    slow: bool = False
    reason: str | None = None
    """Why it is not run."""
    hidden: bool = False
    """Readers do not see it: it prepares what they do see."""


class Malformed(ValueError):
    """A comment that says less than it must, or a block that nobody would run."""


def blocks(text: str) -> Iterator[Block]:
    """In order. Blocks of another language, and those that show files or output, are no examples."""
    slow, reason = False, None
    for match in _PATTERN.finditer(text):
        word, rest = match.group("word"), (match.group("rest") or "").strip()
        if word == "prepare":
            words, _, code = match.group("rest").partition("\n")
            kind = Kind.PYTHON if "python" in words.split() else Kind.SHELL
            yield Block(match.start(), match.end(), kind, code, slow="slow" in words.split(), hidden=True)
            continue
        if word == "slow":
            slow = True
            continue
        if word == "skip":
            reason = " ".join(rest.removeprefix(":").split())
            if not rest.startswith(":") or len(reason) < 10:
                raise Malformed(f"a skip without a reason: {match.group()}")
            continue
        found = kind_of(match.group("language"), match.group("code")) if reason is None else Kind.SHELL
        if found is not None:
            yield Block(match.start(), match.end(), found, match.group("code"), slow, reason)
        slow, reason = False, None


def kind_of(language: str, code: str) -> Kind | None:
    if language in ("sh", "python"):
        return Kind(language)
    if language in ("", "console", "text") and _TRANSCRIPT.match(code):
        return Kind.TRANSCRIPT
    if language in ("", "text") and _COMMAND.match(code):
        raise Malformed(f"commands in a block that nobody runs: make it `sh`\n{code}")
    return None


def steps(transcript: str) -> Iterator[tuple[str, str]]:
    """Each command of a transcript, and what it is to print."""
    for part in re.split(r"^\$ ", transcript, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        end = next((number for number, line in enumerate(lines) if not line.endswith("\\")), 0) + 1
        yield "\n".join(lines[:end]), "\n".join(lines[end:]).strip("\n")
