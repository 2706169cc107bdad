"""Who imports whom in a source tree, those imports included that are for typing only."""

from __future__ import annotations

import ast
from pathlib import Path

Graph = dict[str, set[str]]


def graph_of(root: Path, package: str) -> Graph:
    """By module; what is imported from outside the package is left out."""
    modules = {_name(root, file): file for file in (root / package).rglob("*.py")}
    return {name: _imports(file, modules) - {name} for name, file in modules.items()}


def _name(root: Path, file: Path) -> str:
    return ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _imports(file: Path, modules: dict[str, Path]) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            # A module of a package is meant, not the package that it is in.
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & modules.keys() or {node.module}
    return found & modules.keys()


def circles(graph: Graph) -> list[list[str]]:
    """Modules that need each other, the largest circle first (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for needed in sorted(graph[module]):
            if needed not in order:
                visit(needed)
                lowest[module] = min(lowest[module], lowest[needed])
            elif needed in stack:
                lowest[module] = min(lowest[module], order[needed])
        if lowest[module] == order[module]:
            at = stack.index(module)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return sorted((each for each in found if len(each) > 1), key=len, reverse=True)
