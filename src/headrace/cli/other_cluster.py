"""Failures at a cluster other than that of --bootstrap: what people are told to look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.client.errors import ClientFailure, Refused


@contextmanager
def reached_by(option: str, config: str) -> Iterator[None]:
    """`option` names its brokers, `config` the file of client properties for it."""
    try:
        yield
    except Refused as error:
        if error.hint:
            error.hint = f"that is the cluster of {option}: {error.hint}"
        raise
    except ClientFailure as error:
        error.hint = f"{option} names the other cluster; where it wants TLS or SASL, {config} says how"
        raise
