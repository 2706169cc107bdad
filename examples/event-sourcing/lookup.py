"""Looks accounts up by HTTP: `python lookup.py BOOTSTRAP PORT`, then GET /accounts/NAME, or /accounts.

It holds the accounts in memory and no state of its own. At each start it reads the events from the first one
and answers 503 until it has them all; afterwards it follows them, a few milliseconds behind the writer.
"""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from accounts import Account, Event, apply
from confluent_kafka import KafkaError, KafkaException
from topics import EVENTS, PARTITIONS, partitions_of, reader


class Accounts:
    """One thread writes, and a reader sees an account before or after an event, never between."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap, self.ready = bootstrap, threading.Event()
        self.all: dict[str, Account] = {}

    def follow(self) -> None:
        consumer = reader(self.bootstrap, partitions_of(EVENTS))
        ended: set[int] = set()
        while True:
            message = consumer.poll(1)
            if message is None:
                continue
            if not message.error():
                event = Event.decode(message.value())
                self.all[event.account] = apply(self.all.get(event.account, Account()), event)
            elif message.error().code() != KafkaError._PARTITION_EOF:
                raise KafkaException(message.error())
            else:
                ended.add(message.partition())
                if len(ended) == PARTITIONS:
                    self.ready.set()


class Handler(BaseHTTPRequestHandler):
    accounts: Accounts

    def do_GET(self) -> None:
        everything, _, name = self.path.removeprefix("/").partition("/")
        if not self.accounts.ready.is_set():
            self.answer(503, {"error": "reading the events; try again"})
        elif everything != "accounts":
            self.answer(404, {"error": "there is /accounts and /accounts/NAME"})
        elif not name:
            self.answer(200, {each: asdict(account) for each, account in list(self.accounts.all.items())})
        else:
            self.answer(200, asdict(self.accounts.all.get(name, Account())))

    def answer(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Not a line for each request."""


if __name__ == "__main__":
    Handler.accounts = Accounts(sys.argv[1])
    threading.Thread(target=Handler.accounts.follow, daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
    print(server.server_address[1], flush=True)  # port 0 asks for a free one
    server.serve_forever()
