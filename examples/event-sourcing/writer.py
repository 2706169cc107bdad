"""Turns commands into events: `python writer.py BOOTSTRAP`.

Events, answers and the offsets of their commands are one transaction: each command is decided once, whatever
dies. The accounts that it decides on come from the events alone, read from the first one at each start.
"""

from __future__ import annotations

import signal
import sys

from accounts import Account, Answer, Command, Event, apply, decide
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer
from topics import ANSWERS, COMMANDS, EVENTS, partitions_of, read


def replay(bootstrap: str) -> dict[str, Account]:
    accounts: dict[str, Account] = {}
    for message in read(bootstrap, EVENTS):
        event = Event.decode(message.value())
        accounts[event.account] = apply(accounts.get(event.account, Account()), event)
    return accounts


class Writer:
    def __init__(self, bootstrap: str) -> None:
        self.stopping = False
        # Only one writer can decide: a second one with this id ends the transactions of the first.
        self.producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": "account-writer", "linger.ms": 0}
        )
        self.producer.init_transactions(60)
        self.accounts = replay(bootstrap)
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "account-writer",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
            }
        )
        begin = self.consumer.committed(partitions_of(COMMANDS), 30)
        for partition in begin:
            partition.offset = partition.offset if partition.offset >= 0 else OFFSET_BEGINNING
        self.consumer.assign(begin)

    def run(self) -> None:
        while not self.stopping:
            messages = self.consumer.consume(100, timeout=0.01)
            if messages:
                self.decide_all(messages)
        self.consumer.close()

    def decide_all(self, messages: list[Message]) -> None:
        """If anything fails in here, let the program end: the next one has the accounts from the events."""
        self.producer.begin_transaction()
        for message in messages:
            if message.error():
                raise KafkaException(message.error())
            self.decide(Command.decode(message.value()))
        read_to = [place for place in self.consumer.position(self.consumer.assignment()) if place.offset >= 0]
        self.producer.send_offsets_to_transaction(read_to, self.consumer.consumer_group_metadata())
        self.producer.commit_transaction()

    def decide(self, command: Command) -> None:
        account = self.accounts.get(command.account, Account())
        outcome = decide(account, command)
        accepted = isinstance(outcome, Event)
        if isinstance(outcome, Event):
            account = self.accounts[command.account] = apply(account, outcome)
            self.producer.produce(EVENTS, outcome.encode(), command.account)
        reason = "" if isinstance(outcome, Event) else outcome
        answer = Answer(command.id, accepted, reason, account.version, account.balance)
        self.producer.produce(ANSWERS, answer.encode(), command.account)

    def stop(self, *_: object) -> None:
        self.stopping = True


if __name__ == "__main__":
    writer = Writer(sys.argv[1])
    signal.signal(signal.SIGTERM, writer.stop)
    writer.run()
