"""As whom changes are made has to be clear before a console serves them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.config.http_listener import HttpListener
from headrace.console.changes.making import Actor
from headrace.console.server import Settings, changes_of
from headrace.core.errors import ConfigError


def settings(host: str, *methods: str, is_open: bool = False) -> Settings:
    listener = HttpListener("CONSOLE", host, 9600, None, methods, None, is_open)
    return Settings("127.0.0.1:1", listener, allows_changes=True)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (settings("0.0.0.0", is_open=True), "is served to everybody"),
        (settings("127.0.0.1", "bearer"), "add basic to --authentication"),
        (settings("127.0.0.1", "mtls", "bearer"), "add basic to --authentication"),
    ],
)
def test_it_does_not_start_where_everybody_could_change_the_cluster(made: Settings, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        changes_of(made)


@pytest.mark.parametrize("methods", [(), ("basic",), ("basic", "bearer")])
def test_it_starts_where_it_is_clear(methods: tuple[str, ...]) -> None:
    made = changes_of(settings("127.0.0.1", *methods))
    assert made is not None
    assert made.cluster(Actor("the console's own user", "")).client_id == "headrace-console"


def test_without_the_option_nothing_is_changed() -> None:
    assert changes_of(replace(settings("127.0.0.1"), allows_changes=False)) is None
