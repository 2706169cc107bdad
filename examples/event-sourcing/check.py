"""Do all agree? The log is added up from its first record, and compared with everybody who has an opinion."""

from __future__ import annotations

from dataclasses import dataclass, field

from accounts import Account, Answer, Event
from tellers import Done
from topics import ANSWERS, EVENTS, read


@dataclass
class Verdict:
    events: int
    accounts: dict[str, Account]
    differences: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.differences

    def compare(self, who: str, found: dict[str, Account]) -> None:
        for name in sorted(self.accounts.keys() | found.keys()):
            if self.accounts.get(name) != found.get(name):
                self.differences.append(
                    f"{name}: {who} has {found.get(name)}, the log {self.accounts.get(name)}"
                )


def check(bootstrap: str, done: Done) -> Verdict:
    """Adds up by itself, without the rules that the writer has used."""
    verdict = Verdict(0, {})
    commands: set[str] = set()
    for message in read(bootstrap, EVENTS):
        event = Event.decode(message.value())
        before = verdict.accounts.get(event.account, Account())
        balance = before.balance + {"deposited": 1, "withdrawn": -1}[event.kind] * event.amount
        if event.version != before.version + 1 or event.balance != balance or balance < 0:
            verdict.differences.append(f"{event} cannot follow {before}")
        if event.command in commands:
            verdict.differences.append(f"{event.command} was carried out twice")
        commands.add(event.command)
        verdict.accounts[event.account] = Account(event.version, balance)
        verdict.events += 1
    accepted = [
        answer.command
        for message in read(bootstrap, ANSWERS)
        if (answer := Answer.decode(message.value())).accepted
    ]
    if sorted(accepted) != sorted(commands) or len(accepted) != done.accepted:
        verdict.differences.append(f"{len(accepted)} commands were accepted, {len(commands)} have an event")
    balances = {name: account.balance for name, account in verdict.accounts.items()}
    if balances != done.change:
        verdict.differences.append(f"the tellers counted {done.change}, the log {balances}")
    return verdict
