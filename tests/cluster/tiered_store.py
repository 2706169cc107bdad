"""A bucket for brokers of tests, and the settings with which they use it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tests.directories.object_store import KEY, SECRET, ObjectStore

ENVIRONMENT = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}


def broker_properties(store: ObjectStore) -> dict[str, str]:
    """Everything happens soon."""
    return {
        "remote.log.storage.system.enable": "true",
        "headrace.tier.url": store.location(),
        "headrace.tier.endpoint": store.settings["s3.endpoint"],
        "headrace.tier.region": store.settings["s3.region"],
        "headrace.tier.call.timeout.ms": "5000",
        "headrace.tier.delete.delay.ms": "500",
        "remote.log.manager.task.interval.ms": "200",
        "log.segment.delete.delay.ms": "0",
    }


@contextmanager
def silent(store: ObjectStore) -> Iterator[None]:
    """It takes connections, and answers nothing."""
    store.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        store.signal(signal.SIGCONT)
