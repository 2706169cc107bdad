"""The Python interface: the public names of the packages that people import, documented by autodoc."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Final

from headrace.testing import pytest_plugin

PACKAGES: Final = {
    "headrace.arrow": "Topics as Arrow's columns, without a JVM. Needs `headrace[arrow]`.",
    "headrace.testing": "A real broker, or a cluster, for tests.",
    "headrace.spark": "Topics as tables and streams of Spark. Needs `headrace[spark]`.",
}
FUNCTIONS: Final = ("headrace.audit.confluent.audited", "headrace.audit.kafka_python.audited")
"""Of packages that have modules for several libraries, of which not all are installed."""
_INTRODUCTION: Final = """\
# Python interface

What these packages export is public, and changes as [the policy](compatibility-policy.md) says. Every other
module is internal. Written from the code when this site was built.
"""


def render() -> str:
    parts = [_INTRODUCTION]
    for package, says in PACKAGES.items():
        parts.append(f"\n## `{package}`\n\n{says}\n")
        if package == "headrace.testing":
            parts.append(_fixtures())
        parts += [_public(package, name) for name in sorted(import_module(package).__all__)]
    parts.append(
        "\n## `headrace.audit`\n\nProducers that count what they send, for `headrace audit`. "
        "Needs `headrace[audit]`.\n"
    )
    parts += [_directive("autofunction", name) for name in FUNCTIONS]
    return "".join(parts)


def _public(package: str, name: str) -> str:
    kind = "autoclass" if inspect.isclass(getattr(import_module(package), name)) else "autofunction"
    return _directive(kind, f"{package}.{name}", *((":members:",) if kind == "autoclass" else ()))


def _directive(kind: str, name: str, *options: str) -> str:
    body = "".join(f"   {option}\n" for option in options)
    return f"\n```{{eval-rst}}\n.. {kind}:: {name}\n{body}```\n"


def _fixtures() -> str:
    """pytest finds these by itself wherever Headrace is installed."""
    rows = "".join(
        f"| `{name}` | {(inspect.getdoc(fixture) or '').splitlines()[0]} |\n"
        for name, fixture in vars(pytest_plugin).items()
        if name.startswith("headrace_")
    )
    return f"\nFixtures, with no import:\n\n| Fixture | |\n|---|---|\n{rows}"
