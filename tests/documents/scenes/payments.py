"""The transaction of docs/operations.md: 501 records in `orders-1`, and nobody ends it.

_scene payments BOOTSTRAP
"""

from __future__ import annotations

import signal
import sys

from confluent_kafka import Producer


def main() -> None:
    producer = Producer(
        {
            "bootstrap.servers": sys.argv[1],
            "transactional.id": "payments-7",
            "transaction.timeout.ms": 900_000,
        }
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in range(501):
        producer.produce("orders", str(number).encode(), partition=1)
    producer.flush(60)
    print("ready", flush=True)
    signal.sigwait({signal.SIGTERM})


if __name__ == "__main__":
    main()
