"""Options that several commands share, and the bridge from a command to the asynchronous client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    # A broker uses these options, but not the client.
    from headrace.client.cluster import Cluster
    from headrace.client.security import ClientSecurity

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
COMMAND_CONFIG = "HEADRACE_COMMAND_CONFIG"
_SECURITY = "headrace.client.security"


def bootstrap_option(command: F) -> F:
    """Which brokers, and how to connect to them."""
    return _command_config(_bootstrap(command))


def _command_config(command: F) -> F:
    return click.option(
        "--command-config",
        type=click.Path(exists=True, dir_okay=False),
        envvar=COMMAND_CONFIG,
        show_envvar=True,
        metavar="FILE",
        expose_value=False,
        callback=_keep_security,
        help="Kafka's client properties: security.protocol, ssl.*, sasl.*",
    )(command)


def _keep_security(context: click.Context, _parameter: click.Parameter, path: str | None) -> None:
    """In the context, where `security` finds it: commands need not pass it on."""
    if path is not None:
        from headrace.client.security import ClientSecurity

        context.meta[_SECURITY] = ClientSecurity.read(path)


def security(context: click.Context | None = None) -> ClientSecurity:
    """Of the command that runs."""
    from headrace.client.security import PLAINTEXT, ClientSecurity

    context = context or click.get_current_context(silent=True)
    found = PLAINTEXT if context is None else context.meta.get(_SECURITY, PLAINTEXT)
    assert isinstance(found, ClientSecurity)
    return found


def connect(bootstrap: str, context: click.Context | None = None) -> Cluster:
    """The one place where commands make a client."""
    from headrace.client.cluster import Cluster

    return Cluster(bootstrap, client_id="headrace-cli", security=security(context))


def _bootstrap(command: F) -> F:
    return click.option(
        "-b",
        "--bootstrap",
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        envvar="HEADRACE_BOOTSTRAP",
        show_envvar=True,
        metavar="HOST:PORT",
        help="Brokers to ask first, separated by commas.",
    )(command)


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def watch_options(command: F) -> F:
    interval = click.option(
        "--interval",
        type=click.FloatRange(0.2),
        default=2.0,
        show_default=True,
        metavar="SECONDS",
        help="With --watch.",
    )
    watch = click.option("-w", "--watch", is_flag=True, help="Look again and again, until Ctrl-C.")
    return watch(interval(command))


def pairs(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Callback for options and arguments of the form NAME=VALUE."""
    found: dict[str, str] = {}
    for item in values:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{item!r} is not NAME=VALUE", context, parameter)
        found[name.strip()] = value
    return found


def with_cluster(
    bootstrap: str,
    operation: Callable[[Cluster], Awaitable[T]],
    *,
    progress: Callable[[], str] = str,
    live: bool = False,
) -> T:
    """Run `operation` with a client, to its end. While it waits it is said what for, with its `progress`;
    not under a `live` view, which says it itself."""
    import asyncio

    from headrace.cli import patience
    from headrace.client.errors import ClientFailure
    from headrace.core.tasks import spawn

    async def run() -> T:
        async with connect(bootstrap) as cluster:
            over = asyncio.Event()
            telling = None
            if not live:
                telling = spawn(
                    "what is waited for", patience.tell_of_waiting(cluster, over, progress), is_awaited=True
                )
            try:
                return await operation(cluster)
            except ClientFailure as error:
                await patience.explain(cluster, error)
                raise
            finally:
                over.set()
                if telling is not None:
                    telling.cancel()

    return asyncio.run(run())
