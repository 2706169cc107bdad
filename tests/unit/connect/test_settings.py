"""What a connector can be told, and how mistakes are answered."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.connect.config import config_of
from headrace.connect.settings import BadSetting, Kind, Setting, Settings


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.STRING, " a ", "a"),
        (Kind.INT, "5", 5),
        (Kind.LONG, "-5000000000", -5_000_000_000),
        (Kind.DOUBLE, "0.5", 0.5),
        (Kind.BOOLEAN, "TRUE", True),
        (Kind.LIST, "a, b,,c", ("a", "b", "c")),
        (Kind.PASSWORD, " kept ", " kept "),
    ],
)
def test_texts_become_values(kind: Kind, text: str, value: Any) -> None:
    assert Setting("x", kind).parse(text) == value


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (Setting("x", Kind.INT), "3000000000"),
        (Setting("x", Kind.INT), "two"),
        (Setting("x", Kind.BOOLEAN), "yes"),
        (Setting("x", Kind.INT, least=1), "0"),
        (Setting("x", Kind.INT, most=9), "10"),
        (Setting("x", one_of=("none", "all")), "some"),
        (Setting("x"), None),
    ],
)
def test_mistakes_are_told(setting: Setting, text: str | None) -> None:
    with pytest.raises(BadSetting, match="x"):
        setting.parse(text)


def test_a_secret_is_not_in_the_complaint_about_it() -> None:
    with pytest.raises(BadSetting) as raised:
        Setting("token", Kind.PASSWORD, one_of=("right",)).parse("hunter2")
    assert "hunter2" not in str(raised.value)


def test_a_setting_without_a_default_may_be_left_out_if_that_is_said() -> None:
    assert Setting("x", default=None).parse(None) is None


def test_of_two_with_one_name_the_later_counts() -> None:
    both = Settings(Setting("a", default="1"), Setting("b")) + Settings(Setting("a", default="2"))
    assert [each.name for each in both] == ["a", "b"]
    assert both["a"].default == "2"


def test_a_configuration_has_values_and_what_was_said() -> None:
    config = config_of(
        "c",
        Settings(Setting("rows", Kind.INT, 5)),
        {"rows": "7", "driver.timeout": "3"},
        {"bootstrap.servers": "h"},
    )
    assert config["rows"] == 7
    assert config.with_prefix("driver.") == {"timeout": "3"}
    assert "bootstrap" not in repr(config)
