"""What a broker finds wrong with its own protection: its configuration, its files, its certificates."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from headrace.broker.runtime.health_report import Figure
from headrace.config.security_findings import Finding, Level, examine, expiry
from headrace.config.security_report import FINDING, SECURITY

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext
    from headrace.config.broker import BrokerConfig

_OTHERS: Final = 0o077
"""Rights of everybody but the owner."""


async def tell_findings(context: RequestContext) -> list[Figure]:
    runtime = context.runtime
    config, findings = runtime.static_config, list[Finding]()
    await runtime.offload(lambda: findings.extend(open_files(private_files(config))))
    for listener, seconds in runtime.metrics.read_certificates():
        findings += expiry(f"listener {listener}", seconds)
    return [
        Figure(f"{SECURITY}.{FINDING}{number}", json.dumps(finding), "something is wrong with the protection")
        for number, finding in enumerate((*examine(config), *findings))
    ]


def private_files(config: BrokerConfig) -> list[str]:
    """What holds keys or data."""
    every = [*(each.tls for each in config.listener_security.values()), config.zookeeper_security.tls]
    stores = [tls.key_store.location for tls in every if tls]
    return [*dict.fromkeys(path for path in stores if path), *config.data_directories]


def open_files(paths: Iterable[str]) -> Iterator[Finding]:
    """Blocks. What is not there is no finding: the broker's start says so."""
    for path in paths:
        try:
            mode = os.stat(path).st_mode
        except OSError:
            continue
        if mode & _OTHERS:
            yield Finding(
                Level.SERIOUS,
                path,
                f"other users of the machine can open it (mode {mode & 0o777:o})",
                f"chmod go-rwx {shlex.quote(path)}, as the user that runs the broker",
            )
