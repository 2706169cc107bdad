"""Requests of the commands of `headrace connect` to a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from headrace.cli.options import bundled
from headrace.client import rest
from headrace.client.rest import in_path

F = TypeVar("F", bound=Callable[..., Any])


class Rest(rest.Rest):
    who = "worker"
    hint = "start one with `headrace connect`, or say --url"


def path_of(name: str, *more: str) -> str:
    return "/".join(("/connectors", in_path(name), *more))


def rest_options(command: F) -> F:
    """Where the worker is, as one argument `rest`."""
    return bundled(
        "rest",
        Rest,
        ("url", "ca", "authorization"),
        [
            click.option(
                "--url",
                default="http://127.0.0.1:8083",
                show_default=True,
                envvar="HEADRACE_CONNECT",
                show_envvar=True,
                metavar="URL",
                help="A worker; any one of the group.",
            ),
            click.option(
                "--cacert",
                "ca",
                type=click.Path(exists=True, dir_okay=False),
                metavar="FILE",
                help="The authority that signed the worker's certificate, if the system does not know it.",
            ),
            click.option(
                "--authorization-file",
                "authorization",
                type=click.Path(exists=True, dir_okay=False),
                metavar="FILE",
                help="What the header Authorization says, as in `Bearer TOKEN`.",
            ),
        ],
    )(command)
