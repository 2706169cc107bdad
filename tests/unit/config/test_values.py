from __future__ import annotations

import pytest

from headrace.config.values import ConfigType, ConfigValue, format_value, parse_value


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "False", False),
        (ConfigType.INT, "+5", 5),
        (ConfigType.INT, "-2147483648", -(2**31)),
        (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
        (ConfigType.LONG, "-9223372036854775808", -(2**63)),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.DOUBLE, ".5", 0.5),
        (ConfigType.DOUBLE, "1e3", 1000.0),
        (ConfigType.LIST, " a , b,c ", ("a", "b", "c")),
        (ConfigType.LIST, "", ()),
        (ConfigType.STRING, " text ", "text"),
    ],
)
def test_text_becomes_a_value(type: ConfigType, text: str, value: ConfigValue) -> None:
    assert parse_value(type, text) == value


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (ConfigType.BOOLEAN, ""),
        (ConfigType.BOOLEAN, "1"),
        (ConfigType.INT, ""),
        (ConfigType.INT, "1_000"),
        (ConfigType.INT, "1.0"),
        (ConfigType.INT, "0x10"),
        (ConfigType.INT, "٣"),
        (ConfigType.INT, "2147483648"),
        (ConfigType.LONG, "9" * 5000),
        (ConfigType.DOUBLE, "nan"),
        (ConfigType.DOUBLE, "inf"),
        (ConfigType.DOUBLE, "1_0.0"),
        (ConfigType.DOUBLE, "."),
    ],
)
def test_text_that_is_no_such_value_is_refused(type: ConfigType, text: str) -> None:
    with pytest.raises(ValueError, match=r"number|true or false|bits"):
        parse_value(type, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1e7, "1.0E7"),
        (12345678.0, "1.2345678E7"),
        (0.0001, "1.0E-4"),
        (0.00025, "2.5E-4"),
        (9999999.5, "9999999.5"),
        (True, "true"),
        (("a", "b"), "a,b"),
        ((), ""),
        (7, "7"),
    ],
)
def test_values_are_written_as_java_writes_them(value: ConfigValue, text: str) -> None:
    assert format_value(value) == text
