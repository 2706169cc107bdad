"""`sasl.jaas.config`, beside what Kafka 4.3.1 reads from the same text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import ConfigError
from headrace.security.jaas import LoginModule, parse_login_module

AS_KAFKA: list[tuple[str, dict[str, str]]] = [
    ('a="b" c=d;', {"a": "b", "c": "d"}),
    (";", {}),
    (
        r'username="al\"ice" password="p\\w\n\101\7\400z";',
        {"username": 'al"ice', "password": "p\\w\nA\x07 0z"},
    ),
    (r'a="\399\47";', {"a": "\x0399'"}),
    (r'a="\8\0\12\377";', {"a": "8\0\nÿ"}),
    (r'a="\u0041\x";', {"a": "u0041x"}),
    ("a='it\"s';", {"a": 'it"s'}),
    (r"'a'='b\'c';", {"a": "b'c"}),
    ("a=b//c\n;", {"a": "b"}),
    ("a=b/c;\n;", {"a": "b"}),
    ("a=b /x\r;", {"a": "b"}),
    ("/* no */ a=b;", {"a": "b"}),
    ("a=b/**/;", {"a": "b"}),
    ('a="x/y//z";', {"a": "x/y//z"}),
    ('"user_a b"="c";', {"user_a b": "c"}),
    ("a=b a=c;", {"a": "c"}),
    ("a=é€😀;", {"a": "é€😀"}),
    ("a=b; // end", {"a": "b"}),
    ("a = b ;", {"a": "b"}),
    ('a="";', {"a": ""}),
    ('a="b"c="d";', {"a": "b", "c": "d"}),
    ("user_a=b c$=d e-f=g.h-1;", {"user_a": "b", "c$": "d", "e-f": "g.h-1"}),
    ("a=_b $c=d;", {"a": "_b", "$c": "d"}),
    ('a="b\\\nc";', {"a": "b\nc"}),
]


@pytest.mark.parametrize(("options", "expected"), AS_KAFKA)
def test_options_are_read_as_by_kafka(options: str, expected: dict[str, str]) -> None:
    assert parse_login_module(f"org.X\trequired\r\n{options}") == LoginModule("org.X", "required", expected)


@pytest.mark.parametrize(
    "options",
    [
        *("a=b", "a=;", "a b;", 'a="b\nc";', 'a="b\rc";', 'a="b', 'a="b;', 'a="b" /* ;', 'a="\\', "a=b;;"),
        *(
            'a=b"c" ;',
            "a=12;",
            "b=-1.5;",
            "==b;",
            "12=b;",
            r"a\b=c;",
            r"a=c\d;",
            "# a=b;",
            "a=b,c=d;",
            "a=b#;",
        ),
        *("a=b@c;", "a=b:c;", "a=\x7f;", "a=\x9f;", '"";'),
    ],
)
def test_what_kafka_refuses_is_refused(options: str) -> None:
    with pytest.raises(ConfigError):
        parse_login_module(f"X required {options}")


@pytest.mark.parametrize(
    "text", ["", "X", "X bogus;", "X $required;", '"" required;', "; required;", "X = ;"]
)
def test_class_and_flag_are_needed(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_login_module(text)


def test_a_flag_may_be_quoted_and_of_any_case() -> None:
    assert parse_login_module('"X" "REQUIRED" ;') == LoginModule("X", "required", {})


def test_a_second_module_is_refused() -> None:
    with pytest.raises(ConfigError, match="only one login module"):
        parse_login_module("X required; Y optional c=d;")


CANARY = "hunter2"


@pytest.mark.parametrize(
    "text",
    [
        f'X required password="{CANARY}',
        f'X required password=a"{CANARY}";',
        f'X required password="{CANARY}"',
        f'X required password="a" {CANARY};',
        f'X {CANARY} password="a";',
        f'X required password="a"; {CANARY}',
        f"X required password=1{CANARY};",
    ],
)
def test_no_error_repeats_what_may_be_a_password(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_login_module(text)
    assert CANARY not in str(raised.value)
    assert CANARY not in repr(raised.value)


def test_no_value_is_in_the_text_of_a_module() -> None:
    module = parse_login_module(f'X required password="{CANARY}";')
    assert module.options == {"password": CANARY}
    assert CANARY not in repr(module)


@given(st.dictionaries(st.text(min_size=1, max_size=10), st.text(max_size=20), max_size=4))
def test_quoted_options_are_read_back(options: dict[str, str]) -> None:
    def quoted(text: str) -> str:
        escaped = "".join(f"\\{ord(c):03o}" if c in "\r\n" else c for c in text.replace("\\", "\\\\"))
        return '"' + escaped.replace('"', '\\"') + '"'

    text = " ".join(f"{quoted(name)}={quoted(value)}" for name, value in options.items())
    assert parse_login_module(f"X required {text};").options == options


@given(st.text(st.sampled_from("X required=;\"'\\/*\n a1"), max_size=40))
def test_any_text_is_a_module_or_refused(text: str) -> None:
    try:
        module = parse_login_module(text)
    except ConfigError:
        return
    assert module.class_name
