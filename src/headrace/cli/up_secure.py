"""`headrace up --secure`: what is prepared before the brokers start, and done when they serve."""

from __future__ import annotations

import os
import shlex
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.broker import say_ready
from headrace.cli.up_console import ConsoleProcess
from headrace.client.errors import ClientFailure

if TYPE_CHECKING:
    from headrace.broker.process.local_security import LocalSecurity

CERTIFICATES = "certs"


def protection(directory: Path, broker_ids: Sequence[int], port: int, secure: bool) -> Protected | None:
    """Raises ClientFailure where data that was protected would be served without protection."""
    if not secure:
        if (directory / CERTIFICATES / "admin.properties").exists():
            raise ClientFailure(
                f"{directory} was served with --secure before, and would be open to everybody now",
                f"add --secure, or remove {directory / CERTIFICATES} if that is what you want",
            )
        return None
    from headrace.broker.process.local_cluster import local_ports
    from headrace.broker.process.local_security import LocalSecurity

    os.umask(0o077)  # the metadata holds credentials, and brokers inherit this
    count = len(broker_ids)
    ports = local_ports(port, 2 * count)
    security = LocalSecurity(directory)
    made = security.prepare(broker_ids, ports[count:])
    if made:
        click.echo(f"certificates made in {security.certificates}: {', '.join(made)}", err=True)
    return Protected(security, broker_ids, ports[:count], ports[count:])


class Protected:
    def __init__(
        self,
        security: LocalSecurity,
        broker_ids: Sequence[int],
        ports: Sequence[int],
        broker_ports: Sequence[int],
    ) -> None:
        self.ports = ports
        """Of the listeners for clients."""
        self._security = security
        self.properties = [
            security.properties(broker_id, port, broker_port, broker_ids)
            for broker_id, port, broker_port in zip(broker_ids, ports, broker_ports, strict=True)
        ]
        """What each broker's file says beside the rest."""
        self.zookeeper_properties = security.zookeeper_properties()
        self.prepare_zookeeper = security.prepare_zookeeper
        self._has_failed = False

    def serve(
        self, run: Callable[[Callable[[str], None]], int], console: ConsoleProcess | None = None
    ) -> int:
        """`run` calls its argument on its event loop, which must go on: the administrator is created over
        the wire. So that happens in a thread, and `ready` is printed after it."""

        def on_ready(bootstrap: str) -> None:
            threading.Thread(
                target=self._finish, args=(bootstrap, console), name="admin", daemon=True
            ).start()

        code = run(on_ready)
        return 1 if self._has_failed else code

    def _finish(self, bootstrap: str, console: ConsoleProcess | None) -> None:
        try:
            has_password = self._security.ensure_admin(bootstrap)
        except Exception as error:  # whatever it is, nobody could log in
            self._has_failed = True
            click.echo(f"error: the administrator could not be created: {error}", err=True)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        say_ready(bootstrap)
        if has_password:
            if console is not None:
                console.start(bootstrap, self._security.files.java)
            self._say_next()
        else:
            self._say_lost(bootstrap)

    def _say_next(self) -> None:
        files = self._security.files
        config = shlex.quote(str(files.java))
        for line in (
            f"admin connects with {files.java} (Java, headrace), {files.librdkafka.name} and"
            f" {files.spark.name} beside it",
            "next:",
            f"  headrace user create alice --client-config alice.properties --command-config {config}",
            f"  headrace acl grant alice produce TOPIC --command-config {config}",
        ):
            click.echo(line, err=True)

    def _say_lost(self, bootstrap: str) -> None:
        security = self._security
        words = ["headrace", "user", "passwd", "admin", "--command-config", str(security.admin_file)]
        words += ["--client-bootstrap", bootstrap, "--client-config", str(security.files.java)]
        click.echo(f"the password of admin is not in {security.directory}; a new one:", err=True)
        click.echo(f"  {shlex.join(words)}", err=True)
