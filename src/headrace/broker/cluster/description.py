"""What a broker writes into its member node, and what is remembered on its disks about the last time.

The node is JSON in the form that Kafka gave it, with fields of our own beside Kafka's. The file says in which
boot of the host this process registered: a process that was killed, on a host that stayed up, with the same
directories, has lost nothing that it wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import UUID

from headrace.config.listeners import PROTOCOLS
from headrace.controller.brokers import BrokerDescription
from headrace.controller.image import Endpoint
from headrace.core.errors import CorruptLog
from headrace.core.ids import BrokerId
from headrace.core.ports import Disk
from headrace.log import checkpoints, files

INCARNATION: Final = "headrace.incarnation"
_VERSION: Final = 5


def encode(broker: BrokerDescription) -> bytes:
    first = broker.endpoints[0]
    return json.dumps(
        {
            "version": _VERSION,
            "host": first.host,
            "port": first.port,
            "jmx_port": -1,
            "endpoints": [f"{end.listener}://{end.host}:{end.port}" for end in broker.endpoints],
            "listener_security_protocol_map": {
                end.listener: PROTOCOLS[end.security_protocol] for end in broker.endpoints
            },
            "rack": broker.rack,
            "features": {name: list(levels) for name, levels in sorted(broker.features.items())},
            "incarnation": str(broker.incarnation_id),
            "directories": [str(directory) for directory in broker.directories],
            "previous_epoch": broker.previous_epoch,
            "stopped": broker.stopped,
            "earlier_incarnations": [str(each) for each in broker.earlier_incarnations],
            "lost": sorted(broker.lost),
        }
    ).encode()


def decode(broker_id: BrokerId, node: bytes) -> BrokerDescription:
    try:
        said = json.loads(node)
        return BrokerDescription(
            broker_id=broker_id,
            incarnation_id=UUID(said["incarnation"]),
            endpoints=tuple(
                _endpoint(text, said.get("listener_security_protocol_map", {})) for text in said["endpoints"]
            ),
            rack=said.get("rack"),
            directories=tuple(UUID(text) for text in said["directories"]),
            features={name: (levels[0], levels[1]) for name, levels in said["features"].items()},
            previous_epoch=int(said["previous_epoch"]),
            stopped=said["stopped"],
            earlier_incarnations=tuple(UUID(text) for text in said.get("earlier_incarnations", ())),
            lost=frozenset((str(topic), int(index)) for topic, index in said.get("lost", ())),
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise CorruptLog(f"the node of broker {broker_id} cannot be read: {error!r}") from error


def _endpoint(text: str, protocols: Mapping[str, str]) -> Endpoint:
    listener, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    return Endpoint(listener, host, int(port), PROTOCOLS.index(protocols.get(listener, PROTOCOLS[0])))


class Remembered(NamedTuple):
    boot_id: str
    incarnations: tuple[UUID, ...]
    """Those since which nothing was lost; the last one wrote this."""


def is_same_boot(remembered: Remembered, boot_id: str) -> bool:
    return bool(remembered.boot_id) and remembered.boot_id == boot_id


def remember(disk: Disk, directories: Sequence[str], boot_id: str, incarnations: Sequence[UUID]) -> None:
    """Before anybody hears of this process: a later one must be able to tell what became of it."""
    content = checkpoints.format_properties(
        {"boot.id": boot_id, "incarnations": ",".join(map(str, incarnations))}
    )
    for path in directories:
        files.replace(disk, f"{path}/{INCARNATION}", content, sync=True)


def forget(disk: Disk, path: str) -> None:
    """This directory has failed: what was not synced may be gone, though the host stays up. Whoever opens it
    next must not call itself whole."""
    with suppress(OSError):
        disk.remove(f"{path}/{INCARNATION}")


def recall(disk: Disk, directories: Sequence[str]) -> Remembered | None:
    """What every directory agrees on; None if one of them does not know it, as a new disk does not."""
    found: set[Remembered] = set()
    for path in directories:
        try:
            said = checkpoints.parse_properties(files.read_all(disk, f"{path}/{INCARNATION}"))
            incarnations = tuple(UUID(text) for text in said["incarnations"].split(","))
            found.add(Remembered(said["boot.id"], incarnations))
        except (OSError, KeyError, ValueError, checkpoints.CorruptCheckpoint):
            return None
    return found.pop() if len(found) == 1 else None
