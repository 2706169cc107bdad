"""Nothing that is read, from a file or from a peer, becomes code: no pickle, no eval, no class by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.unit.structure.test_structure import written_by_hand

CODE_FROM_BYTES = {
    "pickle",
    "cPickle",
    "cloudpickle",
    "dill",
    "jsonpickle",
    "marshal",
    "shelve",
    "yaml",
}
CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
BY_NAME = {"import_module", "spec_from_file_location", "run_path", "run_module"}
NAMES_OF_OURS = {
    "headrace/arrow/__init__.py": "names that this file lists",
    "headrace/broker/requests/apis.py": "the response beside a request that this file lists",
    "headrace/cli/lazy_group.py": "commands that the program lists",
    "headrace/cli/log_values.py": "the records of the metadata log, by the files of that package",
    "headrace/registry/protobuf/linking.py": "Google's own types, by a fixed beginning",
    "headrace/spark/__init__.py": "names that this file lists",
}
"""Where a module is imported by a name that is made, and of what."""
YAML_BY_EVENTS = {
    "headrace/desired/writing.py": {"dump"},
    "headrace/desired/yaml_tree.py": {"parse"},
}
"""What these may call of yaml: the parser's events are texts with lines, and nothing is built of them."""


@cache
def parsed() -> dict[str, ast.Module]:
    """Those files that have one of the words in them at all."""
    words = re.compile(rf"\b(?:{'|'.join((*CODE_FROM_BYTES, *CALLS, *BY_NAME, 'shell'))})\b")
    return {name: ast.parse(text) for name, text in written_by_hand().items() if words.search(text)}


def faults(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.partition(".")[0] in CODE_FROM_BYTES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in CODE_FROM_BYTES:
            yield node.module or ""
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in CALLS:
                yield node.func.id
            for word in node.keywords:
                if word.arg == "shell" and not (
                    isinstance(word.value, ast.Constant) and not word.value.value
                ):
                    yield "shell"


def imports_by_name(module: ast.Module) -> bool:
    found = (
        node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        for node in ast.walk(module)
        if isinstance(node, ast.Call)
    )
    return not BY_NAME.isdisjoint(found)


def test_nothing_reads_code_from_data() -> None:
    found = {name: list(faults(module)) for name, module in parsed().items()}
    assert {name: what for name, what in found.items() if what} == {name: ["yaml"] for name in YAML_BY_EVENTS}


@pytest.mark.parametrize("name", YAML_BY_EVENTS)
def test_yaml_is_events_alone(name: str) -> None:
    """Its safe loaders and dumpers, and no function that makes objects."""
    module = parsed()[name]
    called = {
        node.func.attr
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("yaml.")
        if isinstance(node.func, ast.Attribute)
    }
    named = set(re.findall(r"\b\w*(?:Loader|Dumper)\b", written_by_hand()[name]))
    assert called == YAML_BY_EVENTS[name]
    assert named <= {"CSafeLoader", "SafeLoader", "CSafeDumper", "SafeDumper", "Loader", "Dumper"}


def test_modules_by_name_are_those_that_we_list() -> None:
    assert {name for name, module in parsed().items() if imports_by_name(module)} == set(NAMES_OF_OURS)


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from yaml import load",
        "eval(text)",
        "exec(open(path).read())",
        "subprocess.run(line, shell=True)",
        "subprocess.run(line, shell=flag)",
    ],
)
def test_each_is_noticed(text: str) -> None:
    assert list(faults(ast.parse(text)))


@pytest.mark.parametrize(
    "text", ["re.compile(text)", "subprocess.run([a], shell=False)", "import json", "engine.eval(text)"]
)
def test_others_are_not(text: str) -> None:
    assert not list(faults(ast.parse(text)))


def test_a_name_in_the_registry_cannot_lead_elsewhere() -> None:
    """What a schema imports is the one name that comes from a client."""
    import sys

    from headrace.registry.protobuf.lexer import SyntaxFault
    from headrace.registry.protobuf.linking import _imported

    for name in (
        "os.proto",
        "antigravity.proto",
        "google/protobuf/../../os.proto",
        "google/protobuf/x/../../../os.proto",
        "google.protobuf.descriptor.proto",
        "/etc/passwd",
        "google/protobuf/",
    ):
        with pytest.raises(SyntaxFault):
            _imported(name, {})
    assert "antigravity" not in sys.modules
