"""Where the behaviour suite runs: in memory, simulated without faults, and obstore on a real S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from obstore.store import MemoryStore

from headrace.core.ports_objects import ObjectStore
from headrace.objects.obstore_bucket import ObstoreBucket
from headrace.objects.opening import open_bucket
from headrace.testing.simulation.event_queue import EventQueue
from headrace.testing.simulation.faulty_objects import FaultyObjects
from headrace.testing.simulation.memory_objects import MemoryObjects
from tests.directories.object_store import KEY, SECRET, running_object_store
from tests.directories.object_store import ObjectStore as Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running_object_store() as server:
        yield server


@pytest.fixture
def bucket(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a prefix where nothing is, with the environment that opens it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.settings["s3.endpoint"])
    return server.location()


@pytest.fixture(params=["memory", "simulated", "obstore in memory", "obstore on S3"])
def store(request: pytest.FixtureRequest) -> Iterator[ObjectStore]:
    if request.param == "memory":
        yield MemoryObjects(lambda: 1_700_000_000_000)
    elif request.param == "simulated":
        yield FaultyObjects(EventQueue(), Random(0))
    else:
        in_memory = request.param == "obstore in memory"
        opened = ObstoreBucket(MemoryStore()) if in_memory else open_bucket(request.getfixturevalue("bucket"))
        yield opened
        opened.close()
