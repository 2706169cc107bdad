"""Options of the .proto language: its own ones are kept, those that people define are read and passed over.

What an option of one's own means is known to whoever declared it. No rule of compatibility looks at them.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from headrace.registry.protobuf.lexer import SyntaxFault

Value = str | bytes | int | float | None
"""A name is a str, a string is bytes, and None a value with members, which no option of the language has."""

_INTEGERS: Final = frozenset(
    (
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
    )
)


def set_option(options: Message, name: str, value: Value) -> None:
    """`name` with its parentheses and dots, as it was written."""
    if name.startswith("(") or "." in name:
        return
    field = options.DESCRIPTOR.fields_by_name.get(name)
    if field is None:
        raise SyntaxFault(f"there is no option {name}")
    converted = _converted(field, value)
    if field.is_repeated:
        getattr(options, name).append(converted)
    else:
        setattr(options, name, converted)


def _converted(field: FieldDescriptor, value: Value) -> Any:
    if field.enum_type is not None and isinstance(value, str):
        found = field.enum_type.values_by_name.get(value)
        if found is not None:
            return found.number
    elif field.cpp_type == FieldDescriptor.CPPTYPE_BOOL and value in ("true", "false"):
        return value == "true"
    elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING and isinstance(value, bytes):
        return value if field.type == FieldDescriptor.TYPE_BYTES else value.decode()
    elif field.cpp_type in _INTEGERS and isinstance(value, int):
        return value
    raise SyntaxFault(f"option {field.name} cannot be {value!r}")


def default_text(value: Value) -> str:
    """A field's default as a descriptor has it: text, with bytes that are not printable escaped."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return "".join(
                chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\{byte:03o}" for byte in value
            )
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return str(value)
