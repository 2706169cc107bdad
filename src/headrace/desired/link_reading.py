"""Links of a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from headrace.desired.document import Document
from headrace.desired.fields import Fields, items_of, named, text_of
from headrace.desired.links import STATES, Link, joined
from headrace.desired.yaml_tree import DocumentError, Node

_FIELDS = ("source", "topic", "client-config", "groups", "state", "replicas", "settings", "source-config")


def link_of(name: str, node: Node, setting: Callable[[str, Node, int], str]) -> Link:
    """`setting` reads the value of a topic's setting."""
    fields = Fields(node, f"link {name}", _FIELDS)
    source = fields.text("source")
    if source is None:
        raise DocumentError(
            f"link {name} has no source",
            fields.line,
            "write the brokers of the other cluster, as those of this one reach them: `source: HOST:PORT`",
        )
    client_config = fields.text("client-config")
    if client_config is not None and ("/" in client_config or client_config.startswith(".")):
        raise DocumentError(
            f"client-config of link {name} is a path",
            fields.line,
            "name a file in each broker's headrace.link.client.config.dir; secrets stand there, not here",
        )
    state = fields.text("state")
    if state is not None and state not in STATES:
        raise DocumentError(
            f"{state!r} is no state that a file gives a link",
            fields.line,
            f"there are {' and '.join(STATES)}; `headrace link promote {name}` promotes",
        )
    return Link(
        source,
        fields.text("topic") or name,
        client_config,
        _groups(name, fields),
        state,
        fields.count("replicas"),
        {
            each: setting(each, value, line)
            for each, value, line in named(fields.node("settings"), f"settings of link {name}")
        },
        fields.text("source-config"),
    )


def _groups(name: str, fields: Fields) -> str:
    node = fields.node("groups")
    patterns = [] if node is None else [text_of(each, "groups") for each in items_of(node, "groups")]
    for pattern in patterns:
        if "," in pattern:
            raise DocumentError(
                f"{pattern!r}: a comma cannot be in a pattern of groups of link {name}", fields.line
            )
    return joined(patterns)


def with_source_configs(document: Document, directory: Path) -> Document:
    """Relative paths begin at `directory`, where the file is that names them."""
    return replace(
        document,
        links={
            name: each
            if each.source_config is None
            else each._replace(source_config=str(directory / each.source_config))
            for name, each in document.links.items()
        },
    )
