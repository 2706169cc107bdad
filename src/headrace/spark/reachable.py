"""Whether anybody listens where the brokers are said to be, asked before Kafka's client asks.

That client tries again for a minute, with a warning for each time, whatever the reason. A port that refuses
and a name that nobody knows are mistakes in nearly all cases, and are told at once. An address that does not
answer is left to the client: a slow network is none of them.
"""

from __future__ import annotations

import socket
import time
from typing import Final

from headrace.client.cluster import parse_bootstrap
from headrace.core.errors import HeadraceError

_CONNECT_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 0.8
"""For brokers that are started with the job that reads from them."""
_PAUSE_SECONDS: Final = 0.2


class NobodyListens(HeadraceError):
    """Says at which addresses, and why not."""


def require_reachable(bootstrap: str) -> None:
    """Raises NobodyListens where every address of `bootstrap` refuses or is unknown."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while refusals := _refusals(bootstrap):
        if time.monotonic() >= deadline:
            raise NobodyListens(
                f"no broker at {'; '.join(refusals)}. Correct the address, or start the broker: "
                "`headrace up` starts one at 127.0.0.1:9092"
            )
        time.sleep(_PAUSE_SECONDS)


def _refusals(bootstrap: str) -> list[str]:
    """Why each refuses; empty as soon as one may be a broker."""
    found = []
    for host, port in parse_bootstrap(bootstrap):
        try:
            socket.create_connection((host, port), _CONNECT_SECONDS).close()
        except (ConnectionRefusedError, socket.gaierror) as error:
            found.append(f"{host}:{port} ({error.strerror or error})")
            continue
        except OSError:
            pass
        return []
    return found
