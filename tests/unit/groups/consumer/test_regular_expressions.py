"""Patterns: what they match, what is refused, and that none of them takes long."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headrace.core.errors import InvalidRegularExpression
from headrace.groups.consumer.regular_expressions import compile_pattern


def matches(regex: str, name: str) -> bool:
    return compile_pattern(regex).matches(name)


@pytest.mark.parametrize(
    ("regex", "yes", "no"),
    [
        ("", [""], ["a"]),
        ("orders", ["orders"], ["orders1", "border", ""]),
        ("orders.*", ["orders", "orders-1", "orders.x_y"], ["my-orders"]),
        ("orders\\..*", ["orders.x"], ["orders-x"]),
        ("a|b|cd", ["a", "b", "cd"], ["c", "ab"]),
        ("(a|b)+", ["a", "abba"], ["", "abc"]),
        ("a?b*c+", ["c", "abbcc", "bc"], ["ab"]),
        ("a{2}", ["aa"], ["a", "aaa"]),
        ("a{2,}", ["aa", "aaaa"], ["a"]),
        ("a{1,2}?", ["a", "aa"], ["aaa"]),
        ("a{", [], ["a"]),
        ("[a-c]x", ["ax", "cx"], ["dx"]),
        ("[^a-c]x", ["dx", "-x"], ["ax"]),
        ("[]a]", ["a"], ["]a"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[\\d_]+", ["1_2"], ["a"]),
        ("[[:alpha:]]+", ["aB"], ["a1"]),
        ("[[:^alpha:]]+", ["1-"], ["a"]),
        ("\\w+-\\d\\D", ["ab-1x"], ["ab-11"]),
        ("\\W", ["-", "."], ["a", "_"]),
        ("\\S+", ["a.b"], [""]),
        ("\\pL+", ["ab"], ["a1"]),
        ("\\p{Lu}\\P{Lu}", ["Ab"], ["AB"]),
        ("\\p{^Lu}", ["a"], ["A"]),
        ("\\p{Greek}", [], ["a"]),
        ("\\p{Latin}\\p{Common}", ["a1"], ["11"]),
        ("(?i)orders", ["ORDERS", "oRders"], ["order"]),
        ("(?i:o)rders", ["Orders"], ["ORDERS"]),
        ("(?i)a(?-i)b", ["Ab"], ["AB"]),
        ("(?P<x>a)(?<y>b)(?:c)", ["abc"], ["ab"]),
        ("(?ms)^a$", ["a"], ["b"]),
        ("^a$|^b", ["a", "b"], ["ab"]),
        ("a^b", [], ["ab"]),
        ("a$b", [], ["ab"]),
        ("\\Aa\\z", ["a"], ["aa"]),
        ("a\\b-b", ["a-b"], ["ab"]),
        ("a\\Bb", ["ab"], ["a-b"]),
        ("\\Qa.b\\E.", ["a.bx"], ["axbx"]),
        ("\\Qa.b", ["a.b"], ["axb"]),
        ("\\x61\\x{62}\\141", ["aba"], ["abc"]),
        ("a\\-b\\_", ["a-b_"], ["ab"]),
        ("a\\n", ["a\n"], ["a", "a\t"]),
        ("é", ["é"], ["e", "É", "ü"]),
        ("(?i)é", ["é", "É"], ["e"]),
        ("(?i)k", ["k", "K", "\u212a"], ["é"]),
        ("(?i)\\x{212a}", ["k", "K", "\u212a"], ["s"]),
        ("(?i)[^é]", ["e", "ü"], ["é", "É"]),
        ("(?i)σ", ["σ", "Σ", "ς"], ["s"]),
        ("[à-é]+", ["àé", "ç"], ["ê", "e"]),
        ("[^à-é]", ["ê", "e"], ["é"]),
        ("\\x{e9}\\Qü.\\E", ["éü."], ["eü."]),
        ("\\p{Lu}", ["É", "E", "Ж"], ["é", "1"]),
        ("\\p{Greek}+", ["αΩ"], ["a", "ж"]),
        ("\\p{Latin}", ["é", "e"], ["α"]),
        ("\\p{Han}", ["水"], ["α"]),
        ("\\pL\\P{L}", ["é1", "水-"], ["éé"]),
        ("[\\p{Greek}\\d]+", ["α1"], ["a"]),
        ("\\w", ["e"], ["é"]),
        ("é\\b.", ["éa"], ["éé"]),
        (".", ["水", "\t"], ["\n"]),
        ("(?s).", ["\n"], [""]),
        ("(?s:.)(?-s).", ["\na"], ["a\n"]),
        ("(a|)*b", ["b", "aab"], ["a"]),
        ("(a*)*", ["", "aaa"], ["b"]),
    ],
)
def test_what_matches(regex: str, yes: list[str], no: list[str]) -> None:
    pattern = compile_pattern(regex)
    assert [name for name in yes if not pattern.matches(name)] == []
    assert [name for name in no if pattern.matches(name)] == []


@pytest.mark.parametrize(
    ("regex", "problem"),
    [
        ("(a", "missing closing )"),
        ("a)", "missing closing )"),
        ("(?i", "invalid or unsupported Perl syntax"),
        ("[a", "missing closing ]"),
        ("*a", "missing argument to repetition operator"),
        ("(*a)", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{2}{3}", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("a{2,1}", "invalid repeat count"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?!a)", "invalid or unsupported Perl syntax"),
        ("(?<=a)", "invalid or unsupported Perl syntax"),
        ("(?P<a-b>c)", "invalid named capture"),
        ("(?P<a", "invalid named capture"),
        ("\\1", "invalid escape sequence"),
        ("\\k", "invalid escape sequence"),
        ("\\xZZ", "invalid escape sequence"),
        ("\\x{110000}", "invalid escape sequence"),
        ("a\\", "trailing backslash at end of expression"),
        ("[b-a]", "invalid character class range"),
        ("[[:none:]]", "invalid character class range"),
        ("\\p{lower case}", "invalid character class range"),
        ("\\pX", "invalid character class range"),
        ("(a{100}){100}", "invalid repeat count"),
        ("\\pL{20}", "expression too large"),
    ],
)
def test_what_is_refused(regex: str, problem: str) -> None:
    with pytest.raises(InvalidRegularExpression) as refused:
        compile_pattern(regex)
    assert (
        str(refused.value) == f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {problem}."
    )


def test_no_pattern_takes_long() -> None:
    """With going back, the first of these takes longer than anybody can wait."""
    began = time.process_time()
    assert not matches("(a+)+b", "a" * 249)
    assert not matches("(a|aa)*(a|aa)*c", "a" * 249)
    assert matches("(.*a){10}.*", "ba" * 120)
    assert not matches("(x?){200}x{200}y", "x" * 249)
    assert time.process_time() - began < 5


def test_names_that_no_topic_can_have() -> None:
    assert matches("looked at.*", "looked at: all/of it")
    assert matches("[[:alpha:]]+[[:space:]][^a]+", "two é/:")
    assert not matches("\\S+", "two words")
    assert not matches("[[:print:]]+", "é")


PIECES = st.sampled_from(
    [
        "a",
        "b",
        "-",
        ".",
        "\\.",
        "[ab]",
        "[^a]",
        "\\d",
        "\\w",
        "\\s",
        "\\S",
        " ",
        ":",
        "1",
        "(a|b)",
        "(?:ab|a)",
        "^",
        "$",
        "\\b",
        "\\B",
        "é",
        "[à-é]",
        "[^é1]",
    ]
)
SIGNS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "|"])


@given(
    st.lists(st.tuples(PIECES, SIGNS), max_size=6),
    st.lists(st.text("ab1-._ :/éê\n", min_size=1, max_size=5), max_size=8),
)
def test_it_agrees_with_another_engine(parts: list[tuple[str, str]], names: list[str]) -> None:
    regex = "".join(piece + sign for piece, sign in parts)
    # The other one takes a place for something that may not be repeated, and ends before a last newline.
    assume(not re.search(r"(\^|\$|\\b|\\B)[*+?{]", regex))
    other = re.compile(regex.replace("$", "\\Z"), re.ASCII)
    pattern = compile_pattern(regex)
    for name in names:
        assert pattern.matches(name) == (other.fullmatch(name) is not None), (regex, name)
