"""Everything outside a broker that it touches, in one value: the real environment, or a simulated one.

`broker/process/main.py` makes the real one. Nothing else in a broker makes a clock or a socket of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.controller import safeguards as controller_safeguards
from headrace.controller.safeguards import ControllerSafeguards
from headrace.core.ports import Clock, Disk, Random
from headrace.core.ports_coordination import Coordination
from headrace.core.ports_network import Dialer
from headrace.core.ports_objects import ObjectStore
from headrace.log import wholeness
from headrace.log.wholeness import Wholeness
from headrace.network.listener import Endpoint
from headrace.replication import safeguards
from headrace.replication.safeguards import Safeguards

if TYPE_CHECKING:
    from headrace.config.broker import BrokerConfig


def _without_store(_config: BrokerConfig) -> ObjectStore | None:
    return None


def _alone(_config: BrokerConfig) -> Coordination | None:
    return None


class Environment(NamedTuple):
    clock: Clock
    disk: Disk
    random: Random
    dialer: Dialer
    make_coordination: Callable[[BrokerConfig], Coordination | None] = _alone
    """The service that a cluster shares; None for a broker that is alone, which coordinates with itself."""
    make_endpoint: Callable[..., Any] = Endpoint
    """Listens for the broker: `network.listener.Endpoint`, or a simulated one with the same methods."""
    make_object_store: Callable[[BrokerConfig], ObjectStore | None] = _without_store
    """Where history is kept; None for a broker without tiered storage. It waits, so call it in a thread."""
    boot_id: str = ""
    """Another after each start of the host: a process that was killed within one has lost no write."""
    processes: bool = False
    """Whether the broker may start processes of its own. Without them it does everything in its loop."""
    descriptors: int | None = None
    """How many files and sockets the process may have open; None if there is no limit."""
    memory_bytes: int = 8 << 30
    """Of the machine, or of the container."""
    safeguards: Safeguards = safeguards.ALL_ON
    controller_safeguards: ControllerSafeguards = controller_safeguards.ALL_ON
    wholeness: Wholeness = wholeness.ALL_ON
    """Only the simulation switches one off, to prove that it then sees a loss."""
