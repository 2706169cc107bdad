"""Options that several commands share, and the bridge from a command to the asynchronous client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    # A broker uses these options, but not the client.
    from headrace.client.cluster import Cluster
    from headrace.client.security import ClientSecurity

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
COMMAND_CONFIG = "HEADRACE_COMMAND_CONFIG"
_SECURITY = "headrace.client.security"
_PROPERTIES = "headrace.client.properties"
_FILE = "headrace.client.file"
_OUTPUT = "headrace.output"


def bootstrap_option(command: F) -> F:
    """Which brokers, and how to connect to them."""
    return command_config_option(_bootstrap(command))


def command_config_option(command: F) -> F:
    return click.option(
        "--command-config",
        type=click.Path(exists=True, dir_okay=False),
        envvar=COMMAND_CONFIG,
        show_envvar=True,
        metavar="FILE",
        expose_value=False,
        callback=_keep_security,
        help="Kafka's client properties: security.protocol, ssl.*, sasl.*; bootstrap.servers counts if"
        " --bootstrap is not given.",
    )(command)


def _keep_security(context: click.Context, _parameter: click.Parameter, path: str | None) -> None:
    """In the context, where `security` finds it: commands need not pass it on."""
    if path is not None:
        from headrace.client.security import ClientSecurity
        from headrace.config.properties_file import read_properties

        context.meta[_SECURITY] = ClientSecurity.read(path)
        context.meta[_PROPERTIES] = read_properties(path)
        context.meta[_FILE] = path


def security(context: click.Context | None = None) -> ClientSecurity:
    """Of the command that runs."""
    from headrace.client.security import PLAINTEXT, ClientSecurity

    context = context or click.get_current_context(silent=True)
    found = PLAINTEXT if context is None else context.meta.get(_SECURITY, PLAINTEXT)
    assert isinstance(found, ClientSecurity)
    return found


def bootstrap_of(bootstrap: str, context: click.Context | None = None) -> str:
    """What was given; else what the file of --command-config says; else the default."""
    context = context or click.get_current_context(silent=True)
    if context is None or context.get_parameter_source("bootstrap") not in (None, ParameterSource.DEFAULT):
        return bootstrap
    return client_properties(context).get("bootstrap.servers", "").strip() or bootstrap


def client_properties(context: click.Context | None = None) -> dict[str, str]:
    """All of the file that --command-config names, for clients that are not ours."""
    context = context or click.get_current_context(silent=True)
    found = None if context is None else context.meta.get(_PROPERTIES)
    return dict(found or {})


def command_config(context: click.Context) -> str | None:
    """The file itself, for a process that is started."""
    found: str | None = context.meta.get(_FILE)
    return found


def connect(
    bootstrap: str, context: click.Context | None = None, *, how: ClientSecurity | None = None
) -> Cluster:
    """The one place where commands make a client. `how` comes from a file that names the brokers too."""
    from headrace.client.cluster import Cluster

    if how is not None:
        return Cluster(bootstrap, client_id="headrace-cli", security=how)
    return Cluster(bootstrap_of(bootstrap, context), client_id="headrace-cli", security=security(context))


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


def output_option(command: F) -> F:
    """`-o json` as kubectl and rpk have it, and `--json` as everywhere here: both are `as_json`."""

    def keep(context: click.Context, _parameter: click.Parameter, form: str) -> None:
        context.meta[_OUTPUT] = form

    def is_json(context: click.Context, _parameter: click.Parameter, flag: bool) -> bool:
        return flag or context.meta.get(_OUTPUT) == "json"

    output = click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        is_eager=True,
        expose_value=False,
        callback=keep,
    )
    flag = click.option("--json", "as_json", is_flag=True, callback=is_json, help="The same as -o json.")
    return output(flag(command))


def bundled(
    name: str, make: Callable[..., object], fields: Iterable[str], options: Iterable[Callable[[F], F]]
) -> Callable[[F], F]:
    """Options that several commands have, as one argument `name`: what `make` makes of their values, which it
    gets by the names in `fields`. The options are in the order in which `--help` shows them."""
    taken, decorators = tuple(fields), list(options)

    def decorate(command: F) -> F:
        @wraps(command)
        def call(**values: Any) -> Any:
            values[name] = make(**{field: values.pop(field) for field in taken})
            return command(**values)

        result: Any = call
        for option in reversed(decorators):
            result = option(result)
        decorated: F = result
        return decorated

    return decorate


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
    how: ClientSecurity | None = None,
) -> T:
    """Run `operation` with a client, to its end. While it waits it is said what for, with its `progress`;
    not under a `live` view, which says it itself."""
    import asyncio

    from headrace.cli import patience
    from headrace.client.errors import ClientFailure
    from headrace.core.tasks import spawn

    async def run() -> T:
        async with connect(bootstrap, how=how) as cluster:
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
