"""Options of commands that serve HTTP: where, and how clients say who they are."""

from __future__ import annotations

from importlib.util import find_spec

import click

from headrace.config.broker import BROKER_PROPERTIES
from headrace.config.http_listener import HttpListener, Words, http_listener
from headrace.config.properties_file import read_properties
from headrace.config.protection import require_known_protection
from headrace.core.errors import ConfigError

token_file_option = click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Lines user=token, for bearer.",
)
http_config_option = click.option(
    "--http-config",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Properties for https://: ssl.keystore.*, ssl.truststore.*, named as those of a broker.",
)


def listener_of(
    words: Words, listen: str, authentication: str, token_file: str | None, http_config: str | None
) -> HttpListener:
    """Raises ConfigError."""
    methods = tuple(part.lower() for each in authentication.split(",") if (part := each.strip()))
    properties = read_properties(http_config) if http_config is not None else {}
    for name in properties:
        if not name.startswith("ssl."):
            raise ConfigError(f"{http_config}: {name} is not known; it has ssl. properties")
    require_known_protection(properties, BROKER_PROPERTIES)
    try:
        found = http_listener(words, listen, methods, token_file, properties)
    except ConfigError as error:
        if str(error).startswith(f"{words.address}: "):
            raise click.BadParameter(f"{listen!r} is not HOST:PORT", param_hint="--listen") from None
        raise
    if found is None:
        raise click.BadParameter("it is empty; write HOST:PORT", param_hint="--listen")
    return found


def is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package around it is not there
        return False
