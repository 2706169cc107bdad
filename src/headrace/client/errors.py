"""What can go wrong between a client and its brokers. Each error says what to do about it, where it can."""

from __future__ import annotations

from headrace.core.errors import HeadraceError
from headrace.core.ids import TopicPartition


class ClientFailure(HeadraceError):
    """Base of all; `hint` is a second sentence for people, or empty."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


class Unreachable(ClientFailure):
    """Nobody listens at the address, or the name does not resolve."""

    def __init__(self, host: str, port: int, reason: str = "") -> None:
        detail = f" ({reason})" if reason else ""
        super().__init__(
            f"nothing listens at {host}:{port}{detail}: is the broker running?",
            "start one with `headrace up`, or name another with --bootstrap HOST:PORT",
        )


class NotTrusted(ClientFailure):
    """The broker is there, and TLS or SASL failed."""

    def __init__(self, peer: str, reason: str) -> None:
        super().__init__(
            f"no secure connection to {peer}: {reason}",
            "the properties for it stand in the file that --command-config or HEADRACE_COMMAND_CONFIG names",
        )


class ConnectionLost(ClientFailure):
    """The connection ended while an answer was awaited. Whether the request was carried out is unknown."""


class NotAKafkaBroker(ConnectionLost):
    """What answers does not speak the protocol, or hung up before it could: a broker that is killed just then
    looks the same."""


class TimedOut(ClientFailure):
    """No answer within the time that was given. Whether the request was carried out is unknown."""


class ApiMissing(ClientFailure):
    """The broker has no version of the API that this client also has."""


class Refused(ClientFailure):
    """The broker answered with an error code."""

    def __init__(self, code: int, text: str, hint: str = "") -> None:
        super().__init__(text, hint)
        self.code = code


class RecordsRefused(Refused):
    """What the broker answered to records of this partition."""

    def __init__(self, partition: TopicPartition, error: Refused) -> None:
        super().__init__(error.code, str(error), error.hint)
        self.partition = partition


class LogOffline(Refused):
    """The leader cannot serve its log and the metadata says so: nobody else will lead instead, and asking
    again does not help before somebody has looked at its disks."""
