"""The three formats behind one face: parse a schema, compare it with another, print it.

A format's module is imported with its first schema, so that a registry starts quickly.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.registry import errors
from headrace.registry.content import Content, SchemaType
from headrace.registry.parsed import Parsed
from headrace.registry.state import State

_PARSED_AT_MOST: Final = 1000


class Dependency(NamedTuple):
    """A schema that another one refers to, under the name that it uses."""

    name: str
    content: Content


class Formats:
    """Parses, and keeps what it parsed: versions of a subject are compared again and again."""

    def __init__(self) -> None:
        self._parsed: OrderedDict[tuple[Content, tuple[Dependency, ...]], Parsed] = OrderedDict()

    def parse(self, state: State, content: Content) -> Parsed:
        """RegistryError 42201 for what is no schema, or refers to what is not there."""
        dependencies = tuple(dependencies_of(state, content))
        key = (content, dependencies)
        parsed = self._parsed.get(key)
        if parsed is None:
            try:
                parsed = self._parsed[key] = _parse(content, dependencies)
            except RecursionError:
                raise errors.invalid_schema("it is nested too deeply") from None
            if len(self._parsed) > _PARSED_AT_MOST:
                self._parsed.popitem(last=False)
        else:
            self._parsed.move_to_end(key)
        return parsed


def dependencies_of(state: State, content: Content) -> list[Dependency]:
    """All that the schema needs, directly or not, each after what it needs itself."""
    found: dict[str, Dependency] = {}

    def visit(current: Content) -> None:
        for reference in current.references:
            if reference.name in found:
                continue
            try:
                target = state.version(reference.subject, reference.version, deleted=True).content
            except errors.RegistryError:
                where = f'subject "{reference.subject}" and version {reference.version}'
                raise errors.invalid_schema(f"No schema reference found for {where}") from None
            visit(target)
            found[reference.name] = Dependency(reference.name, target)

    visit(content)
    return list(found.values())


def _parse(content: Content, dependencies: Sequence[Dependency]) -> Parsed:
    if content.type is SchemaType.AVRO:
        from headrace.registry.avro.schema import AvroSchema

        return AvroSchema.parse(content.text, [dependency.content.text for dependency in dependencies])
    if content.type is SchemaType.JSON:
        from headrace.registry.json_schema.schema import JsonSchema

        return JsonSchema.parse(content.text, {name: target.text for name, target in dependencies})
    from headrace.registry.protobuf.schema import ProtobufSchema

    return ProtobufSchema.parse(content.text, {name: target.text for name, target in dependencies})
