"""A controller without a disk stops at once: it can decide nothing any more, not even about itself."""

from __future__ import annotations

import errno

import pytest

from headrace.testing.disk import Fault
from tests.simulation.test_found_by_seeds import scene

KAFKAS = {"controlled.shutdown.retry.backoff.ms": "5000", "controlled.shutdown.max.retries": "3"}


@pytest.mark.parametrize("is_active", [True, False], ids=["controller", "another"])
def test_a_broker_whose_only_directory_failed_is_gone_soon(is_active: bool) -> None:
    """It once asked itself four times, five seconds apart, to be allowed to leave."""
    with scene(properties=KAFKAS) as it:
        host = next(each for each in it.cluster.hosts if (each in it.active_controllers()) is is_active)
        process, broker = host.process, host.broker
        assert broker is not None
        for operation in ("pwrite", "sync", "open"):
            host.disk.faults.append(Fault(operation, "/data", errno.EIO))
        host.wanted = False
        broker.storage.logs.directories[0].fail(OSError(errno.EIO, "Input/output error"), "write to it")
        it.cluster.run_until(broker.runtime.failure.done, 5, "fatal error: the broker stops")
        it.cluster.run_until(lambda: host.process is not process, 3, "it has stopped")
        it.cluster.run_until(lambda: it.in_sync() == 2, 10, "it is fenced")
