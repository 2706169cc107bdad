"""Where the schema registry and the workers of Connect are, for `headrace apply`, `headrace export` and
`headrace console`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import click

from headrace.cli.options import bundled
from headrace.client.errors import ClientFailure

if TYPE_CHECKING:
    from headrace.desired.services import Services

F = TypeVar("F", bound=Callable[..., Any])
_FILE: Final = click.Path(exists=True, dir_okay=False)


class ServiceAddresses(NamedTuple):
    registry: str | None
    registry_authorization: str | None
    connect: str | None
    connect_authorization: str | None
    ca: str | None

    @property
    def services(self) -> Services:
        from headrace.desired.services import ConnectRest, RegistryRest, Services

        registry = self.registry and RegistryRest(self.registry, self.ca, self.registry_authorization)
        connect = self.connect and ConnectRest(self.connect, self.ca, self.connect_authorization)
        return Services(registry or None, connect or None)

    def services_within(self, seconds: float, most_bytes: int) -> Services:
        """Each answer has limits. What is shown to others has these addresses in it, so no password may be.

        Raises ClientFailure.
        """
        from headrace.desired.services import ConnectRest, RegistryRest, Services

        for option, url in (("--registry", self.registry), ("--connect", self.connect)):
            _check(option, url)
        return Services(
            RegistryRest(
                self.registry, self.ca, self.registry_authorization, seconds=seconds, most_bytes=most_bytes
            )
            if self.registry
            else None,
            ConnectRest(
                self.connect, self.ca, self.connect_authorization, seconds=seconds, most_bytes=most_bytes
            )
            if self.connect
            else None,
        )


def _check(option: str, url: str | None) -> None:
    """Does not repeat what was written."""
    if not url:
        return
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ClientFailure(f"{option} is no address", "write http://host:port, or https://")
    if "@" in parts.netloc:
        hint = f"put it into the file of {option}-authorization-file, as `Basic ...`"
        raise ClientFailure(f"{option} has a password in its address, which pages would show", hint)


def service_options(command: F) -> F:
    """As one argument `addresses`."""
    return bundled(
        "addresses",
        ServiceAddresses,
        ServiceAddresses._fields,
        (
            click.option(
                "--registry",
                envvar="HEADRACE_REGISTRY",
                show_envvar=True,
                metavar="URL",
                help="The schema registry, for schemas.",
            ),
            click.option(
                "--registry-authorization-file",
                "registry_authorization",
                type=_FILE,
                metavar="FILE",
                help="What the header Authorization says to the registry, as in `Bearer TOKEN`.",
            ),
            click.option(
                "--connect",
                envvar="HEADRACE_CONNECT",
                show_envvar=True,
                metavar="URL",
                help="A worker of Connect, for connectors.",
            ),
            click.option(
                "--connect-authorization-file",
                "connect_authorization",
                type=_FILE,
                metavar="FILE",
                help="What the header Authorization says to the worker.",
            ),
            click.option(
                "--cacert",
                "ca",
                type=_FILE,
                metavar="FILE",
                help="The authority that signed the certificates of both, if the system does not know it.",
            ),
        ),
    )(command)
