"""Reading a tree field by field: what is unknown, missing or of another form is told with its line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from headrace.config.broker import nearest
from headrace.desired.yaml_tree import DocumentError, Items, Mapping, Node, Text

_TRUE: Final = ("true", "True", "TRUE")
_FALSE: Final = ("false", "False", "FALSE")


class Fields:
    """The fields of one mapping. `what` says of what, as in `a topic`."""

    def __init__(self, node: Node, what: str, known: Sequence[str]) -> None:
        self.entries = mapping_of(node, what).entries
        self.line = node.line
        self.what = what
        for name, line in mapping_of(node, what).lines.items():
            if name not in known:
                near = nearest(name, list(known))
                meant = f"; did you mean {near}?" if near else ""
                raise DocumentError(
                    f"{name!r} is not a field of {what}{meant}", line, f"{what} has {', '.join(known)}"
                )

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def node(self, name: str) -> Node | None:
        """None also where nothing stands behind the name."""
        node = self.entries.get(name)
        return None if isinstance(node, Text) and node.is_null else node

    def count(self, name: str) -> int | None:
        """A number from 1 on."""
        if name not in self.entries:
            return None
        return count_of(self.entries[name], name)

    def flag(self, name: str) -> bool:
        node = self.entries.get(name)
        if node is None:
            return False
        if isinstance(node, Text) and node.is_plain and node.text in (*_TRUE, *_FALSE):
            return node.text in _TRUE
        raise DocumentError(f"{name} is true or false", node.line)

    def text(self, name: str) -> str | None:
        return None if name not in self.entries else text_of(self.entries[name], name)


def mapping_of(node: Node, what: str) -> Mapping:
    if not isinstance(node, Mapping):
        raise DocumentError(f"{what} is written as names with values: NAME: VALUE", node.line)
    return node


def items_of(node: Node, what: str) -> tuple[Node, ...]:
    if not isinstance(node, Items):
        raise DocumentError(f"{what} is a list: each entry begins with a -", node.line)
    return node.items


def named(node: Node | None, what: str) -> Iterator[tuple[str, Node, int]]:
    """Name, value and line of each entry."""
    if node is not None:
        found = mapping_of(node, what)
        for name, value in found.entries.items():
            yield name, value, found.lines[name]


def text_of(node: Node, what: str) -> str:
    if not isinstance(node, Text) or node.is_null or not node.text:
        raise DocumentError(f"{what} lacks its value, which is a text", node.line)
    return node.text


def count_of(node: Node, what: str, *, at_least: int = 1, at_most: int = 2**31 - 1) -> int:
    if isinstance(node, Text) and node.text.isascii() and node.text.isdecimal() and len(node.text) <= 10:
        number = int(node.text)
        if at_least <= number <= at_most:
            return number
    limit = f"from {at_least} on" if at_most == 2**31 - 1 else f"from {at_least} to {at_most}"
    raise DocumentError(f"{what} is a number {limit}", node.line)
