"""YAML without surprises: texts stay texts, lines are known, and no file is larger than it looks."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.desired import yaml_tree
from headrace.desired.yaml_tree import DocumentError, Items, Mapping, Text, read_tree


def texts(content: bytes) -> dict[str, str]:
    tree = read_tree(content)
    assert isinstance(tree, Mapping)
    return {name: node.text for name, node in tree.entries.items() if isinstance(node, Text)}


def test_no_text_becomes_something_else() -> None:
    assert texts(b"a: no\nb: on\nc: 1.10\nd: 2026-11-19\ne: 0x10\nf: 1_000\ng: 12:30\nyes: 1") == {
        "a": "no",
        "b": "on",
        "c": "1.10",
        "d": "2026-11-19",
        "e": "0x10",
        "f": "1_000",
        "g": "12:30",
        "yes": "1",
    }


def test_quotes_are_known() -> None:
    tree = read_tree(b"a: ''\nb:\nc: ~\nd: '~'")
    assert isinstance(tree, Mapping)
    assert {name for name, node in tree.entries.items() if isinstance(node, Text) and node.is_null} == {
        "b",
        "c",
    }


def test_lines_are_those_of_the_file() -> None:
    tree = read_tree(b"# first\na:\n  - 1\n  - b: 2\n")
    assert isinstance(tree, Mapping)
    assert tree.lines == {"a": 2}
    items = tree.entries["a"]
    assert isinstance(items, Items)
    assert [each.line for each in items.items] == [3, 4]


def test_aliases_and_merges() -> None:
    tree = read_tree(b"base: &base {a: 1, b: 2}\nsame: *base\nother: {<<: *base, b: 3}\n")
    assert isinstance(tree, Mapping)
    other = tree.entries["other"]
    assert tree.entries["same"] is tree.entries["base"]
    assert isinstance(other, Mapping)
    assert {name: each.text for name, each in other.entries.items() if isinstance(each, Text)} == {
        "a": "1",
        "b": "3",
    }


def test_a_quoted_merge_is_a_name() -> None:
    assert texts(b"'<<': 1") == {"<<": "1"}


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"---\n", b"~\n"])
def test_nothing_is_nothing(content: bytes) -> None:
    assert read_tree(content) is None


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"a: 1\nb: 2\na: 3", "line 3: 'a' stands here a second time; the first is in line 1"),
        (b"a: 1\n'a': 3", "line 2: 'a' stands here a second time"),
        (b"a: [1", "this is not YAML"),
        (b"\ta: 1", "this is not YAML"),
        (b"a: \x00", "this is not YAML"),
        (b"a: 1\n\xff: 2", "line 2: this is not UTF-8"),
        (b"---\na: 1\n---\nb: 1", "line 3: a second document begins"),
        (
            b"a: !!python/object/apply:os.system [ls]",
            "the tag !!python/object/apply:os.system means nothing here",
        ),
        (b"a: !!str 1", "the tag !!str means nothing here"),
        (b"&a [*a]", "there is no anchor &a above this line"),
        (b"a: *b", "there is no anchor &b"),
        (b"? [a]\n: 1", "a name has to be a text"),
        (b"a: {<<: 1}", "only a mapping can be merged"),
        (b"[" * 30, "nested more than 20 deep"),
        (b"[" * 100_000, "nested more than 20 deep"),
        (b"a:\n " + b"{b: " * 100_000, "nested more than 20 deep"),
    ],
)
def test_what_is_refused_says_where(content: bytes, text: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read_tree(content)
    assert text in str(refused.value)
    assert str(refused.value).startswith("line ")


def test_a_file_that_swells_is_refused() -> None:
    """Twelve lines that would be 10^11 values."""
    lines = [b"a0: &a0 [x, x]"]
    lines += [b"a%d: &a%d [%s]" % (at, at, b", ".join([b"*a%d" % (at - 1)] * 10)) for at in range(1, 12)]
    with pytest.raises(DocumentError, match="line 7: with its aliases"):
        read_tree(b"\n".join(lines))


def test_a_file_that_is_too_large_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_tree, "MOST_BYTES", 10)
    with pytest.raises(DocumentError, match="10 bytes at most"):
        read_tree(b"[" * 11)


@given(st.binary(max_size=200))
def test_whatever_it_is_it_is_read_or_refused(content: bytes) -> None:
    with suppress(DocumentError):
        read_tree(content)


@given(st.text(alphabet="ab:-&*<{}[]!#'\" \n,?|>%@`~", max_size=60))
def test_the_signs_of_yaml_in_any_order(text: str) -> None:
    with suppress(DocumentError):
        read_tree(text.encode())


def test_a_star_without_quotes_is_explained() -> None:
    with pytest.raises(DocumentError) as refused:
        read_tree(b"owns: {topics: [*]}")
    assert refused.value.hint == "a * that begins a value stands in quotes: '*'"
