"""YAML as a tree of texts with their lines. Nothing in it becomes a number, a date, a truth or an object.

`no` stays the word no and 1.10 stays 1.10, because what a value means is decided by who reads it. Only events
of the parser are used, so that the limits hold before anything is built. An alias counts as much as what it
stands for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from headrace.client.errors import ClientFailure

MOST_BYTES: Final = 16_000_000
MOST_NODES: Final = 1_000_000
DEEPEST: Final = 20
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE: Final = "<<"
_STAR: Final = "a * that begins a value stands in quotes: '*'"
_YAMLS_OWN: Final = "tag:yaml.org,2002:"


class DocumentError(ClientFailure):
    """The file cannot be read, and says where."""

    def __init__(self, text: str, line: int, hint: str = "") -> None:
        super().__init__(f"line {line}: {text}", hint)
        self.line = line


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    line: int
    is_plain: bool
    """Written without quotes: an empty one is no text at all."""

    @property
    def is_null(self) -> bool:
        return self.is_plain and self.text in ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Mapping:
    entries: dict[str, Node]
    line: int
    lines: dict[str, int]
    """Of the keys."""


Node = Text | Items | Mapping


def read_tree(content: bytes) -> Node | None:
    """None of a file without anything in it. Raises DocumentError."""
    if len(content) > MOST_BYTES:
        raise DocumentError(f"a file may have {MOST_BYTES:,} bytes at most; this one has {len(content):,}", 1)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DocumentError("this is not UTF-8", line) from None
    try:
        return _Composer(yaml.parse(text, Loader=_LOADER)).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        hint = _STAR if error.context == "while scanning an alias" else ""
        raise DocumentError(f"this is not YAML: {error.problem or error.context}", line, hint) from None
    except yaml.YAMLError as error:
        raise DocumentError(f"this is not YAML: {str(error).splitlines()[0]}", 1) from None


class _Composer:
    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._nodes = 0

    def document(self) -> Node | None:
        found: Node | None = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise DocumentError("a second document begins; a file has one", _line(event))
                found = self._node(next(self._events), 1)
        return None if isinstance(found, Text) and found.is_null else found

    def _node(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self._nodes
        self._count(1, event)
        if depth > DEEPEST:
            raise DocumentError(f"this is nested more than {DEEPEST} deep", _line(event))
        if event.tag is not None and event.tag != "!":
            tag = event.tag.replace(_YAMLS_OWN, "!!")
            raise DocumentError(f"the tag {tag} means nothing here: write the value without it", _line(event))
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node = Text(event.value, _line(event), event.implicit[0])
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._items(event, depth)
        else:
            node = self._mapping(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node, self._nodes - before
        return node

    def _alias(self, event: Any) -> Node:
        if event.anchor not in self._anchors:
            raise DocumentError(f"there is no anchor &{event.anchor} above this line", _line(event))
        node, size = self._anchors[event.anchor]
        self._count(size, event)
        return node

    def _items(self, start: Any, depth: int) -> Items:
        items = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return Items(tuple(items), _line(start))

    def _mapping(self, start: Any, depth: int) -> Mapping:
        entries: dict[str, Node] = {}
        lines: dict[str, int] = {}
        merged: list[Mapping] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            if not isinstance(key, Text):
                raise DocumentError("a name has to be a text", _line(event))
            value = self._node(next(self._events), depth + 1)
            if key.is_plain and key.text == _MERGE:
                merged.extend(_merged(value, key.line))
                continue
            if key.text in entries:
                raise DocumentError(
                    f"{key.text!r} stands here a second time; the first is in line {lines[key.text]}",
                    key.line,
                )
            entries[key.text], lines[key.text] = value, key.line
        for each in merged:  # what stands in the mapping itself comes first, then the first of those merged
            for name, value in each.entries.items():
                if name not in entries:
                    entries[name], lines[name] = value, each.lines[name]
        return Mapping(entries, _line(start), lines)

    def _count(self, nodes: int, event: Any) -> None:
        self._nodes += nodes
        if self._nodes > MOST_NODES:
            raise DocumentError(f"with its aliases this is more than {MOST_NODES:,} values", _line(event))


def _merged(value: Node, line: int) -> list[Mapping]:
    found = value.items if isinstance(value, Items) else (value,)
    mappings = [each for each in found if isinstance(each, Mapping)]
    if len(mappings) < len(found):
        raise DocumentError("only a mapping can be merged with <<", line)
    return mappings


def _line(event: Any) -> int:
    line: int = event.start_mark.line + 1
    return line
