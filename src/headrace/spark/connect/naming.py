"""Names on the cluster that belong to one connector."""

from __future__ import annotations

from hashlib import sha256

from headrace.spark.sink.naming import SINK_ID


def sink_id(connector: str) -> str:
    """Of a source's batches. A connector's name can have signs that a sink's cannot."""
    name = f"connect-{connector}"
    if SINK_ID.fullmatch(name):
        return name
    return f"connect-{sha256(connector.encode()).hexdigest()[:32]}"


def letters_id(connector: str) -> str:
    """Of the dead letters of a sink."""
    return sink_id(f"{connector}-dead-letters")


def staged_id(connector: str) -> str:
    """Of a sink that stages its batches."""
    return sink_id(f"{connector}-staged")
