"""Python expressions for one field: its type, its default, how it is read and how it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from codegen.model import Field, Message
from codegen.versions import NONE, Versions

FIXED = {
    "bool": ("?", 1),
    "float64": ("d", 8),
    "int16": ("h", 2),
    "int32": ("i", 4),
    "int64": ("q", 8),
    "int8": ("b", 1),
    "uint16": ("H", 2),
}
"""The struct module's code, and the size."""

_SINGLE_CALL = {"bool": "boolean", "uuid": "uuid"}
_VARIABLE = {"bytes", "records", "string"}
_PYTHON_TYPES = {
    "bool": "bool",
    "bytes": "bytes",
    "float64": "float",
    "records": "Buffer",
    "string": "str",
    "uuid": "UUID",
}


def python_type(field: Field) -> str:
    name = field.type if field.is_struct else _PYTHON_TYPES.get(field.type, "int")
    if field.is_array:
        name = f"list[{name}]"
    return f"{name} | None" if field.can_be_null else name


def default_value(field: Field) -> str:
    """The default as an expression that makes a new object each time."""
    if field.default_is_null:
        return "None"
    if field.is_array:
        return "[]"
    if field.is_struct:
        return f"{field.type}()"
    if field.type == "uuid":
        return "ZERO_UUID"
    if field.type in ("bytes", "records"):
        return 'b""'
    if field.type == "string":
        return repr(field.default or "").replace("'", '"')
    if field.type == "bool":
        return str((field.default or "false").lower() == "true")
    if field.type == "float64":
        return str(float(field.default or 0))
    return str(int(field.default or "0", 0))


def has_mutable_default(field: Field) -> bool:
    return not field.default_is_null and (field.is_array or field.is_struct)


def differs_from_default(field: Field) -> str:
    default = default_value(field)
    if default == "None":
        return f"self.{field.name} is not None"
    if default in ("True", "False"):
        return f"not self.{field.name}" if default == "True" else f"self.{field.name}"
    return f"self.{field.name} != {default}"


def by_version(expression: Callable[[int], str], versions: Versions) -> str:
    """A conditional expression over the contiguous runs of versions with equal expressions."""
    runs: list[tuple[int, str]] = []
    for version in versions.each():
        text = expression(version)
        if not runs or runs[-1][1] != text:
            runs.append((version, text))
    chosen = runs[0][1]
    for low, text in runs[1:]:
        chosen = f"{text} if version >= {low} else {chosen}"
    return chosen


class Expressions:
    """The expressions that depend on the rest of the message."""

    def __init__(self, message: Message) -> None:
        self._message = message

    # --- smallest sizes, for the limit on array counts ----------------------------------------------

    def _min_size(self, field: Field, version: int) -> int:
        compact = field.flexible.has(version)
        if field.tagged.has(version):
            return 0
        if field.is_array or field.type in ("bytes", "records"):
            return 1 if compact else 4
        if field.is_struct:
            return 1 if field.nullable.has(version) else self._min_struct_size(field.type, version)
        if field.type == "string":
            return 1 if compact else 2
        return 16 if field.type == "uuid" else FIXED[field.type][1]

    def _min_struct_size(self, name: str, version: int) -> int:
        fields = self._message.structures[name].fields
        total = sum(self._min_size(each, version) for each in fields if each.versions.has(version))
        return total + (1 if self._message.flexible.has(version) else 0)

    def _min_element_size(self, field: Field, version: int) -> int:
        if field.is_struct:
            return max(1, self._min_struct_size(field.type, version))
        if field.type in _VARIABLE:
            return 1 if field.flexible.has(version) else 2 if field.type == "string" else 4
        return 16 if field.type == "uuid" else FIXED[field.type][1]

    # --- names of the methods of Reader and Writer --------------------------------------------------

    @staticmethod
    def _method(field: Field, version: int) -> str:
        """For one value that is not a structure."""
        if field.type not in _VARIABLE:
            return _SINGLE_CALL.get(field.type, field.type)
        # What is null is the array then, never its elements.
        nullable = field.nullable.has(version) and not field.is_array
        prefix = ("compact_" if field.flexible.has(version) else "") + ("nullable_" if nullable else "")
        return prefix + field.type if prefix or field.type != "bytes" else "bytes_"

    @staticmethod
    def _length_method(field: Field, version: int, *, reading: bool) -> str:
        nullable = "nullable_" if reading and field.nullable.has(version) else ""
        return ("compact_" if field.flexible.has(version) else "") + nullable + "array_length"

    # --- reading ------------------------------------------------------------------------------------

    def read(self, field: Field) -> str:
        if field.is_array:
            return self._read_array(field)
        if not field.is_struct:
            return by_version(lambda version: f"reader.{self._method(field, version)}()", field.versions)
        value = f"{field.type}.decode(reader, version)"
        if not field.can_be_null:
            return value
        if field.nullable != field.versions:
            raise ValueError(f"{field.name}: a structure that is nullable in some of its versions only")
        # Kafka marks a null structure with -1, and with 0 if it is tagged.
        present = "reader.unsigned_varint() > 0" if field.tag >= 0 else "reader.int8() >= 0"
        return f"{value} if {present} else None"

    def _read_array(self, field: Field) -> str:
        smallest: dict[str, int] = {}
        for version in field.versions.each():
            method = self._length_method(field, version, reading=True)
            size = self._min_element_size(field, version)
            smallest[method] = min(size, smallest.get(method, size))

        def length(version: int) -> str:
            method = self._length_method(field, version, reading=True)
            return f"reader.{method}({smallest[method]})"

        count = by_version(length, field.versions)
        if field.can_be_null:
            return f"None if (n := {count}) < 0 else {self._read_elements(field, 'n')}"
        return self._read_elements(field, count)

    def _read_elements(self, field: Field, count: str) -> str:
        if field.type in FIXED:
            code, size = FIXED[field.type]
            return f'reader.numbers({count}, "{code}", {size})'
        if field.is_struct:
            element = f"{field.type}.decode(reader, version)"
        else:
            element = by_version(lambda version: f"reader.{self._method(field, version)}()", field.versions)
        return f"[{element} for _ in range({count})]"

    # --- writing ------------------------------------------------------------------------------------

    def write_tagged(self, field: Field, to: str) -> list[str]:
        """For a value that is known to differ from its default."""
        # A structure keeps its mark of being there.
        if field.default_is_null and (field.is_array or not field.is_struct):
            field = replace(field, nullable=NONE)
        return self.write(field, to)

    def write(self, field: Field, to: str = "writer") -> list[str]:
        value = f"self.{field.name}"
        if field.is_array:
            return self._write_array(field, to)
        if not field.is_struct:
            return [by_version(lambda version: self._write_value(field, version, to, value), field.versions)]
        if not field.can_be_null:
            return [f"{value}.encode({to}, version)"]
        return [
            f"if {value} is None:",
            f"    {to}.int8({0 if field.tag >= 0 else -1})",
            "else:",
            f"    {to}.int8(1)",
            f"    {value}.encode({to}, version)",
        ]

    def _write_value(self, field: Field, version: int, to: str, value: str) -> str:
        if field.can_be_null and not field.nullable.has(version) and not field.is_array:
            value = f"required({value})"
        return f"{to}.{self._method(field, version)}({value})"

    def _write_array(self, field: Field, to: str) -> list[str]:
        value = f"self.{field.name}"

        def length(version: int) -> str:
            if field.nullable.has(version):
                count = f"-1 if {value} is None else len({value})"
            else:
                count = f"len(required({value}))" if field.can_be_null else f"len({value})"
            return f"{to}.{self._length_method(field, version, reading=False)}({count})"

        lines = [by_version(length, field.versions)]
        item = f"each_{field.name}"  # a name for each loop, because each has a type of its own
        elements = f"{value} or ()" if field.can_be_null else value
        if field.type in FIXED:
            return [*lines, f'{to}.numbers({elements}, "{FIXED[field.type][0]}")']
        if field.is_struct:
            element = f"{item}.encode({to}, version)"
        else:
            element = by_version(lambda version: self._write_value(field, version, to, item), field.versions)
        return [*lines, f"for {item} in {elements}:", f"    {element}"]
