"""A token that was made a moment ago is not known to every broker: each reads of it in the metadata.

Kafka's clients give up where they cannot log in. So nobody gets a token that not every broker lets in.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.tokens.admin import TokenAdmin, TokenFailed

_PAUSE_SECONDS: Final = 0.2
_ATTEMPTS: Final = 150


def await_known(
    admin: TokenAdmin, kafka: KafkaProperties, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Raises TokenFailed when a broker does not know of it after half a minute."""
    attempts = iter(range(_ATTEMPTS))

    def ask(address: str) -> list[str]:
        for _ in attempts:
            found = admin.brokers(KafkaProperties({**kafka, "bootstrap.servers": address}))
            if found is not None:
                return found
            sleep(_PAUSE_SECONDS)
        raise TokenFailed(
            f"the broker at {address} does not let in the token that was just made; is sasl.mechanism "
            f"{kafka['sasl.mechanism']} enabled there, and delegation.token.secret.key the same as elsewhere?"
        )

    brokers = ask(kafka.bootstrap)
    # Which of several gave the answer is not said, so all of them are asked.
    for address in brokers if len(brokers) > 1 else ():
        ask(address)
