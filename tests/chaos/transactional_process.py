"""One life of a transactional client: a process that tells each step before it makes it, one line each.

It is ended by SIGTERM, after the transaction at hand, or killed at any moment. A transaction has 1 to 4 sends
and polls, and the offsets of what it has polled. Whatever was never asked to be committed has certainly
failed; once it was asked for, only the answer tells.
"""

from __future__ import annotations

import faulthandler
import json
import random
import signal
import sys
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message

from tests.chaos.group_reader import GroupReader
from tests.chaos.transactional_producer import Ended, TransactionalProducer, must_abort
from tests.chaos.workload import SMALL_BATCHES, TOPIC, encode, key
from tests.checker.history import Action, Assign, History, Poll, Send, Subscribe

#: Of the transactions that could be committed, so many are aborted at will.
ABORTED: Final = 0.1
#: Of the operations, so many change what is read, or how.
CHANGED: Final = 1 / 64


@dataclass(frozen=True)
class Life:
    """What a process is told when it starts."""

    name: str
    process: str
    """Values and the history carry this name; it is never used again."""
    bootstrap: str
    partitions: int
    protocol: str
    """How the shared group works: a key of `PROTOCOLS`."""
    seed: str

    def arguments(self) -> list[str]:
        return ["-m", "tests.chaos.transactional_process", json.dumps(asdict(self))]


def tell(**row: Any) -> None:
    sys.stdout.write(json.dumps(row, separators=(",", ":")) + "\n")
    sys.stdout.flush()


class Transactions:
    def __init__(self, life: Life) -> None:
        self.life = life
        self.random = random.Random(life.seed)
        self.history = History(on_event=lambda event: tell(**event))
        self.writer = TransactionalProducer(
            life.bootstrap,
            life.name,
            {**SMALL_BATCHES, "linger.ms": self.random.choice((0, 5))},
            lambda text: tell(remark=text),
        )
        self.reader: GroupReader | None = None
        self.stopping = False
        self._number = 0
        self._known: dict[int, int] = {}
        """By assignment: where the group's offsets stand at least, as the last commits say."""

    def run(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stopping", True))
        self.writer.start()
        while not self.stopping:
            try:
                if self.reader is None or self.reader.failed or self.random.random() < CHANGED:
                    self._read_anew()
                if not self._transaction():
                    self._go_back()
            except KafkaException as error:  # of the consumer: those of the producer never come here
                tell(remark=f"a transactional consumer was told {error.args[0].name()}")
                self._drop_reader()
        self._drop_reader()

    # Reading.

    def _read_anew(self) -> None:
        self._drop_reader()
        life = self.life
        subscribed = self.random.random() < 0.5
        protocol, group = (life.protocol, "shared") if subscribed else ("", life.name)
        reader = GroupReader(
            life.bootstrap, group, TOPIC, lambda text: tell(complaint=f"{life.process}: {text}"), protocol
        )
        self.reader = reader
        if subscribed:
            reader.subscribe()
            self._done("subscribe", Subscribe((TOPIC,), group))
        else:
            self._assign(reader)

    def _assign(self, reader: GroupReader) -> None:
        places = reader.assign(self.life.partitions)
        for partition, least in self._known.items():
            if places[partition] < least:
                text = f"offset {places[partition]} of {key(partition)}, after {least} was committed"
                tell(complaint=f"{self.life.process}: its group has {text}")
        keys = tuple(key(partition) for partition in places)
        self._done("assign", Assign(keys, from_beginning=True, group=self.life.name))

    def _go_back(self) -> None:
        if self.reader is None:
            return
        if self.reader.subscribed:
            self.reader.rewind()
        else:
            self._assign(self.reader)

    def _drop_reader(self) -> None:
        if self.reader is not None:
            self.reader.close()
        self.reader = None

    def _done(self, kind: str, action: Action) -> None:
        self.history.ok(self.history.invoke(self.life.process, kind, [action]))

    # Transactions.

    def _transaction(self) -> bool:
        """Whether it is certain that it was committed."""
        planned = [self._planned() for _ in range(self.random.randint(1, 4))]
        operation = self.history.invoke(self.life.process, "transaction", planned)
        done: list[Action] = []
        committing = False
        problem = ""
        try:
            problem = self._perform(planned, done)
            if not problem:
                committing = True
                tell(committing=operation)
                self.writer.commit()
        except KafkaException as error:
            problem = error.args[0].name()
            self._end(operation, done, problem, committing=committing)
            must_abort(error)
        except Ended as error:
            self._end(operation, done, str(error), committing=committing)
            raise
        else:
            self._end(operation, done, problem, committing=committing)
        if problem:
            self._abort()
            return False
        assert self.reader is not None
        if not self.reader.subscribed:
            self._known |= {one.partition: one.offset for one in self.reader.offsets()}
        return True

    def _end(self, operation: int, done: list[Action], problem: str, *, committing: bool) -> None:
        if not problem:
            self.history.ok(operation, done)
        elif committing:
            self.history.unknown(operation, problem, done)
        else:
            self.history.fail(operation, problem, done)

    def _abort(self) -> None:
        try:
            self.writer.abort()
        except KafkaException as error:
            raise Ended(error.args[0].name()) from error

    def _planned(self) -> Action:
        if self.random.random() < 0.5:
            return Poll()
        self._number += 1
        return Send(key(self.random.randrange(self.life.partitions)), f"{self.life.process}.{self._number}")

    def _perform(self, planned: list[Action], done: list[Action]) -> str:
        """Everything but the commit, as far as it comes: `done` is what was tried.

        Returns why it must not be committed, or nothing.
        """
        reader, producer = self.reader, self.writer.producer
        assert reader is not None
        reader.begin()
        producer.begin_transaction()
        for action in planned:
            if isinstance(action, Send):
                done.append(action)
                told = partial(self._told, done, len(done) - 1)
                padding = self.random.randrange(200)
                partition = int(action.key.rpartition("-")[2])
                producer.produce(
                    TOPIC, encode(str(action.value), padding), partition=partition, on_delivery=told
                )
            else:
                done.extend(poll for poll, _ in reader.poll(0.1))
            if reader.failed:
                return "the consumer failed"
        if not self.writer.flush():
            return "not all was delivered in time"
        if any(isinstance(action, Send) and action.offset is None for action in done):
            return "not all was delivered"
        if offsets := reader.offsets():
            if reader.lost_what_it_read:
                return "a partition was taken away"
            self.writer.send_offsets(offsets, reader.consumer)
        return "aborted at will" if self.random.random() < ABORTED else ""

    def _told(self, done: list[Action], place: int, error: KafkaError | None, message: Message) -> None:
        send, offset = done[place], message.offset()
        if error is None and isinstance(send, Send) and offset is not None and offset >= 0:
            done[place] = send._replace(offset=offset)
        elif error is not None:
            tell(remark=f"a send of a transaction was told {error.name()}")


def main() -> int:
    faulthandler.register(signal.SIGUSR1)
    transactions = Transactions(Life(**json.loads(sys.argv[1])))
    try:
        transactions.run()
    except Ended as error:
        tell(remark=f"a transactional producer ended by {error}")
    except KafkaException as error:
        tell(remark=f"a transactional producer ended by {error.args[0].name()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
