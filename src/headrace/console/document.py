"""What a page shows, as JSON: named tuples become objects with the same names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.doctor.model import Unknown


def document(value: Any) -> Any:
    if isinstance(value, Unknown):
        return {"not_known": value.reason}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        fields: Mapping[str, Any] = value._asdict()
        return {name: document(each) for name, each in fields.items()}
    if isinstance(value, Mapping):
        return {str(name): document(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [document(each) for each in value]
    return value
