"""The shape of the source: no large circles, small files, a broker of few parts."""

from __future__ import annotations

import ast
import statistics
from functools import cache
from pathlib import Path

from headrace.broker.broker import Broker
from tests.unit.structure.imports import Graph, circles, graph_of

SOURCE = Path(__file__).parents[3] / "src"
GENERATED = ("headrace/protocol/messages", "headrace/protocol/stored")
LARGEST_CIRCLE = 3
LONGEST_FILE, MEDIAN_FILE, LONGEST_FUNCTION = 400, 110, 60
MOST_PARTS = 12


@cache
def imports() -> Graph:
    return graph_of(SOURCE, "headrace")


def written_by_hand() -> dict[str, str]:
    found = {str(file.relative_to(SOURCE)): file.read_text() for file in SOURCE.rglob("*.py")}
    return {name: text for name, text in found.items() if text and not name.startswith(GENERATED)}


def test_no_circle_of_imports_has_more_than_three_files() -> None:
    assert [each for each in circles(imports()) if len(each) > LARGEST_CIRCLE] == []


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"d", "a"}, "d": set[str](), "e": {"a"}}
    assert circles(graph) == [["a", "b", "c"]]


def test_files_are_small() -> None:
    lines = {name: len(text.splitlines()) for name, text in written_by_hand().items()}
    assert {name: count for name, count in lines.items() if count > LONGEST_FILE} == {}
    assert statistics.median(lines.values()) <= MEDIAN_FILE


def test_functions_are_short() -> None:
    long = [
        (name, node.name)
        for name, text in written_by_hand().items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION
    ]
    assert long == []


def test_a_broker_has_few_parts_and_all_of_them_from_its_constructor() -> None:
    assert len(Broker.__slots__) <= MOST_PARTS
    assert "__dict__" not in Broker.__slots__, "nothing can be added later"


def test_nothing_but_the_assembly_is_at_the_top_of_the_broker() -> None:
    top = {file.name for file in (SOURCE / "headrace/broker").glob("*.py")}
    assert top == {"__init__.py", "assembly.py", "broker.py"}


def test_no_part_asks_the_broker() -> None:
    """Only whoever runs it knows it."""
    graph = imports()
    know_it = {name for name, needed in graph.items() if "headrace.broker.broker" in needed}
    assert {
        name for name in know_it if not name.startswith(("headrace.broker.process.", "headrace.testing."))
    } == {"headrace.broker.assembly"}
