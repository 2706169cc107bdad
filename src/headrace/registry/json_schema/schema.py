"""A JSON Schema: checked by jsonschema-rs against its meta-schema, compared by our own rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from headrace.registry import errors
from headrace.registry.json_schema.containment import Containment
from headrace.registry.json_schema.documents import Documents, Unresolved
from headrace.registry.parsed import Parsed


class JsonSchema:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    @classmethod
    def parse(cls, text: str, references: Mapping[str, str]) -> JsonSchema:
        """RegistryError where it is no schema, or refers to what is not there."""
        others = {name: _loaded(referenced) for name, referenced in references.items()}
        root = _loaded(text)
        try:
            if isinstance(root, dict):
                jsonschema_rs.meta.validate(root)
            documents = Documents(root, others)
            documents.check()
        except jsonschema_rs.ValidationError as error:
            place = "/".join(map(str, error.instance_path))
            raise errors.invalid_schema(f"of type JSON: at #/{place}: {error.message}") from None
        except (Unresolved, ValueError) as error:
            raise errors.invalid_schema(f"of type JSON: {error}") from None
        return cls(documents)

    @property
    def text(self) -> str:
        return json.dumps(self._documents.root, separators=(",", ":"), ensure_ascii=False)

    @property
    def normalized(self) -> str:
        return json.dumps(self._documents.root, separators=(",", ":"), ensure_ascii=False, sort_keys=True)

    @property
    def identity(self) -> str:
        return self.normalized

    def cannot_read(self, writer: Parsed) -> list[str]:
        assert isinstance(writer, JsonSchema)
        found = Containment(writer._documents, self._documents).differences()
        return [str(difference) for difference in dict.fromkeys(found)]

    def formatted(self, format_name: str) -> str:  # noqa: ARG002  JSON Schema has one form only
        return self.text


def _loaded(text: str) -> Any:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise errors.invalid_schema(f"of type JSON: not JSON: {error}") from None
    if not isinstance(document, (bool, dict)):
        raise errors.invalid_schema("of type JSON: a schema is an object, true or false")
    return document
