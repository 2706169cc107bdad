"""The rules of the bank, without a broker or a clock. What happened is an event; the rest follows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self


class Record:
    """JSON both ways."""

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()  # type: ignore[call-overload]  # each of the classes below is one

    @classmethod
    def decode(cls, value: bytes) -> Self:
        return cls(**json.loads(value))


@dataclass(frozen=True)
class Command(Record):
    """What somebody wants. It may be refused."""

    id: str
    account: str
    #: The account's version that the sender has seen: if it is newer by now, he decided on old facts.
    expected_version: int
    kind: str  # "deposit" or "withdraw"
    amount: int


@dataclass(frozen=True)
class Event(Record):
    """What happened. It is never changed and never deleted."""

    command: str
    account: str
    version: int
    kind: str  # "deposited" or "withdrawn"
    amount: int
    #: After it, so that the last event of an account is the account: the table on Spark uses that.
    balance: int


@dataclass(frozen=True)
class Answer(Record):
    command: str
    accepted: bool
    reason: str
    #: The account as it is now: whoever was refused can decide again.
    version: int
    balance: int


@dataclass(frozen=True)
class Account:
    version: int = 0
    balance: int = 0


def decide(account: Account, command: Command) -> Event | str:
    """An event, or why there is none."""
    if command.expected_version != account.version:
        return f"version is {account.version}, not {command.expected_version}"
    if command.kind == "withdraw" and command.amount > account.balance:
        return f"only {account.balance} is there"
    kind, change = (
        ("deposited", command.amount) if command.kind == "deposit" else ("withdrawn", -command.amount)
    )
    return Event(
        command.id, command.account, account.version + 1, kind, command.amount, account.balance + change
    )


def apply(account: Account, event: Event) -> Account:
    """What the account is after it. Versions have no gap, or the log is not what was written."""
    if event.version != account.version + 1:
        raise ValueError(f"{event.account}: event {event.version} follows version {account.version}")
    change = event.amount if event.kind == "deposited" else -event.amount
    return Account(event.version, account.balance + change)
