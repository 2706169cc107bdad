"""Tellers look an account up, decide, and send a command; if another was faster, they decide again."""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.request
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException

from accounts import Account, Answer, Command
from confluent_kafka import OFFSET_END, KafkaError, KafkaException, Producer
from topics import ANSWERS, COMMANDS, partitions_of, reader


@dataclass
class Done:
    """What the tellers remember of their work, to be compared with the log afterwards."""

    accepted: int = 0
    conflicts: int = 0
    refused: int = 0
    #: By account, what was paid in less what was paid out, by the answers that came.
    change: dict[str, int] = field(default_factory=dict)


class Counter:
    """Sends commands, and gives each answer to the one who waits for it."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0}
        )
        self._consumer = reader(bootstrap, partitions_of(ANSWERS, OFFSET_END))
        self._waiting: dict[str, Future[Answer]] = {}
        self._listening = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()
        self._listening.wait(30)

    def ask(self, command: Command) -> Answer:
        waiting = self._waiting[command.id] = Future()
        self._producer.produce(COMMANDS, command.encode(), command.account)
        self._producer.poll(0)
        return waiting.result(120)  # a writer that died decides when it is back

    def _listen(self) -> None:
        while True:
            message = self._consumer.poll(1)
            if message is None:
                continue
            if not message.error():
                answer = Answer.decode(message.value())
                self._waiting.pop(answer.command).set_result(answer)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                self._listening.set()
            else:
                raise KafkaException(message.error())


def look_up(url: str, account: str) -> Account:
    """The lookup service may be down, or reading its events again: its users wait."""
    while True:
        try:
            with urllib.request.urlopen(f"{url}/accounts/{account}", timeout=10) as answer:
                return Account(**json.load(answer))
        except (OSError, HTTPException):  # HTTP's 503 is an OSError, too
            time.sleep(0.05)


def work(bootstrap: str, url: str, tellers: int, commands: int) -> Done:
    """All tellers serve the same few accounts, so that they get in each other's way."""
    counter, done, lock = Counter(bootstrap), Done(), threading.Lock()

    def serve(teller: int) -> None:
        chance = random.Random(teller)
        for n in range(commands):
            account = f"account-{chance.randrange(8)}"
            kind, amount = chance.choice(["deposit", "deposit", "withdraw"]), chance.randrange(1, 100)
            seen = look_up(url, account)
            for attempt in range(1_000):
                command = Command(f"teller-{teller} {n} {attempt}", account, seen.version, kind, amount)
                answer = counter.ask(command)
                conflict = not answer.accepted and answer.version != seen.version
                with lock:
                    done.accepted += answer.accepted
                    done.conflicts += conflict
                    done.refused += not answer.accepted and not conflict
                    if answer.accepted:
                        signed = amount if kind == "deposit" else -amount
                        done.change[account] = done.change.get(account, 0) + signed
                if not conflict:
                    break
                seen = Account(answer.version, answer.balance)

    with ThreadPoolExecutor(tellers) as pool:
        list(pool.map(serve, range(tellers)))  # raises what went wrong
    return done
