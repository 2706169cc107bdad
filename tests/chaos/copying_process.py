"""One life of a copier: it consumes, transforms and produces in transactions, until it ends or dies.

Nothing in it knows what was copied before. That is in the offsets of its group, which are committed together
with the copies or not at all.
"""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, Final

from confluent_kafka import KafkaException, Message

from tests.chaos.group_reader import GroupReader
from tests.chaos.transactional_producer import Ended, TransactionalProducer, must_abort

SOURCE: Final = "exactly-once-in"
TARGET: Final = "exactly-once-out"
GROUP: Final = "copiers"


@dataclass(frozen=True)
class CopierLife:
    name: str
    bootstrap: str
    protocol: str

    def arguments(self) -> list[str]:
        return ["-m", "tests.chaos.copying_process", json.dumps(asdict(self))]


def transformed(value: bytes) -> bytes:
    """What the copy of a value is: it can be told from the value, and is another for each."""
    return b"copy of " + value


def tell(**row: Any) -> None:
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


class Copier:
    def __init__(self, life: CopierLife) -> None:
        self.life = life
        self.writer = TransactionalProducer(
            life.bootstrap, life.name, {"linger.ms": 5}, lambda text: tell(remark=text)
        )
        self.reader = self._new_reader()
        self.stopping = False

    def _new_reader(self) -> GroupReader:
        life = self.life
        reader = GroupReader(
            life.bootstrap, GROUP, SOURCE, lambda text: tell(complaint=f"{life.name}: {text}"), life.protocol
        )
        reader.subscribe()
        return reader

    def run(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stopping", True))
        self.writer.start()
        while not self.stopping:
            try:
                if not self._step():
                    self.reader.rewind()
            except KafkaException as error:  # of the consumer: a new one begins where the group stands
                tell(remark=f"a copying consumer was told {error.args[0].name()}")
                self.reader.close()
                self.reader = self._new_reader()
                time.sleep(0.1)
        self.reader.close()

    def _step(self) -> bool:
        """Whether the consumer may go on from where it is."""
        self.reader.begin()
        messages = [message for _, some in self.reader.poll(0.2) for message in some]
        if self.reader.failed:
            raise Ended("an error of its consumer")
        if self.reader.lost_what_it_read:
            return False
        return not messages or self._copy(messages)

    def _copy(self, messages: list[Message]) -> bool:
        producer = self.writer.producer
        try:
            producer.begin_transaction()
            for message in messages:
                partition = message.partition()
                assert partition is not None
                producer.produce(TARGET, transformed(message.value() or b""), partition=partition)
            problem = "" if self.writer.flush() else "not all was delivered"
            if not problem:
                self.writer.send_offsets(self.reader.offsets(), self.reader.consumer)
                self.writer.commit()
        except KafkaException as error:
            problem = must_abort(error)
        if not problem:
            tell(copied=len(messages))
            return True
        tell(remark=f"a copy was aborted by {problem}")
        try:
            self.writer.abort()
        except KafkaException as error:
            raise Ended(error.args[0].name()) from error
        return False


def main() -> int:
    faulthandler.register(signal.SIGUSR1)
    try:
        Copier(CopierLife(**json.loads(sys.argv[1]))).run()
    except Ended as error:
        tell(remark=f"a copier ended by {error}")
    except KafkaException as error:
        tell(remark=f"a copier ended by {error.args[0].name()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
