"""A JSON Schema and those that it refers to: where a `$ref` leads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

Schema = bool | Mapping[str, Any]
_DATA: Final = frozenset(("enum", "const", "default", "examples"))
"""Keywords whose values are data: what looks like a reference in them is none."""


_OLD_DRAFTS: Final = ("draft-03", "draft-04", "draft-06", "draft-07")


class Unresolved(ValueError):
    pass


class Documents:
    """`texts` are other documents by the name that a reference uses. An `$id` of theirs is a name as well."""

    def __init__(self, root: Schema, others: Mapping[str, Schema]) -> None:
        self.root = root
        self._addresses: dict[str, Schema] = {}
        self._anchors: dict[tuple[str, str], Schema] = {}
        self._bases: dict[int, str] = {}
        """Under which address each subschema stands, by its identity. They live as long as this does."""
        self._documents = [root, *others.values()]
        dialect = root.get("$schema") if isinstance(root, Mapping) else None
        self.references_stand_alone = isinstance(dialect, str) and any(
            name in dialect for name in _OLD_DRAFTS
        )
        """Up to draft 7, what stands beside a `$ref` does not count."""
        for name, document in others.items():
            self._addresses[name] = document
            self._index(document, name)
        self._addresses[""] = root
        self._index(root, "")

    def _index(self, schema: Any, base: str) -> None:
        if isinstance(schema, Mapping):
            identifier = schema.get("$id") or schema.get("id")
            if isinstance(identifier, str) and not identifier.startswith("#"):
                base = urldefrag(urljoin(base, identifier)).url
                self._addresses.setdefault(base, schema)
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(schema.get(keyword), str):
                    self._anchors[base, schema[keyword]] = schema
            self._bases[id(schema)] = base
            for keyword, value in schema.items():
                if keyword not in _DATA:
                    self._index(value, base)
        elif isinstance(schema, list):
            for item in schema:
                self._index(item, base)

    def target(self, holder: Mapping[str, Any]) -> Schema:
        """What the `$ref` of this schema stands for."""
        reference = holder["$ref"]
        base = self._bases.get(id(holder), "")
        address, fragment = urldefrag(reference)
        document = self._document(address, base) if address else self._addresses.get(base, self.root)
        if not fragment:
            return document
        if not fragment.startswith("/"):
            place = urldefrag(urljoin(base, address)).url if address else base
            anchored = self._anchors.get((place, fragment)) or self._anchors.get((address, fragment))
            if anchored is None:
                raise Unresolved(f"$ref {reference!r}: there is no anchor {fragment!r}")
            return anchored
        return _pointed(document, fragment, reference)

    def _document(self, address: str, base: str) -> Schema:
        for candidate in (address, urljoin(base, address)):
            if candidate in self._addresses:
                return self._addresses[candidate]
        raise Unresolved(f"$ref {address!r} is neither in the schema nor among its references")

    def same_as(self, other: Documents) -> bool:
        return self._documents == other._documents

    def check(self) -> None:
        """Unresolved for the first `$ref` that leads nowhere."""
        for holder in _holders(self.root):
            if not holder["$ref"].startswith(("http://json-schema.org/", "https://json-schema.org/")):
                self.target(holder)


def _pointed(document: Any, fragment: str, reference: str) -> Schema:
    current = document
    for part in fragment.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(current, Mapping) and key in current:
            current = current[key]
        elif isinstance(current, list) and key.isdecimal() and int(key) < len(current):
            current = current[int(key)]
        else:
            raise Unresolved(f"$ref {reference!r}: there is no {key!r}")
    if not isinstance(current, (bool, Mapping)):
        raise Unresolved(f"$ref {reference!r} leads to what is no schema")
    return current


def _holders(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema
        for keyword, value in schema.items():
            if keyword not in _DATA:
                yield from _holders(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _holders(item)
