"""Values of the configuration: their types, how text becomes one, and how one becomes text again.

The accepted spellings are those of Kafka's parser: blanks around a value do not count, booleans may be
written in any case, lists are separated by commas, numbers are decimal.
"""

from __future__ import annotations

import enum
import re

from headrace.config.secret import Secret

ConfigValue = bool | int | float | str | tuple[str, ...] | Secret | None

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
DOUBLE_MAX = 1.7976931348623157e308

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_REAL_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


class ConfigType(enum.IntEnum):
    """The numbers are those of the DescribeConfigs answer."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_WIDTHS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def parse_value(type: ConfigType, text: str) -> bool | int | float | str | tuple[str, ...] | Secret:
    """ValueError says what was expected, without the name of the property."""
    text = text.strip()
    if type in _WIDTHS:
        return _whole_number(text, _WIDTHS[type])
    if type is ConfigType.BOOLEAN:
        lowered = text.lower()
        if lowered not in ("true", "false"):
            raise ValueError("write true or false")
        return lowered == "true"
    if type is ConfigType.DOUBLE:
        if _REAL_NUMBER.fullmatch(text) is None:
            raise ValueError("not a number")
        return float(text)
    if type is ConfigType.LIST:
        return tuple(item.strip() for item in text.split(",")) if text else ()
    return Secret(text) if type is ConfigType.PASSWORD else text


def _whole_number(text: str, bits: int) -> int:
    # Twenty characters hold every 64-bit number; longer text is refused before it costs anything.
    if len(text) > 20 or _WHOLE_NUMBER.fullmatch(text) is None:
        raise ValueError("not a whole number" if len(text) <= 20 else f"does not fit {bits} bits")
    number = int(text)
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise ValueError(f"does not fit {bits} bits")
    return number


def format_value(value: ConfigValue) -> str:
    """The text that DescribeConfigs answers. Reals are written as Java writes them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _java_double(value)
    return "" if value is None else str(value)


def _java_double(value: float) -> str:
    # Java goes to scientific notation at 10^7 and below 10^-3, Python at 10^16 and below 10^-4.
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        digits = f"{value:.17e}" if float(f"{value:.16e}") != value else f"{value:.16e}"
        for precision in range(17):
            shorter = f"{value:.{precision}e}"
            if float(shorter) == value:
                digits = shorter
                break
        mantissa, _, exponent = digits.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"
