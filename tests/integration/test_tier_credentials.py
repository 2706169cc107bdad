"""Credentials of the store that are wrong, expired or exchanged, and clocks that are apart from its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import HeadraceProcess, Place
from tests.cluster.tiered_store import ENVIRONMENT, broker_properties
from tests.cluster_process import eventually
from tests.directories.object_store import ObjectStore, running_object_store
from tests.integration.tiered_broker import (
    create_topic,
    headrace,
    local_start,
    produce,
    read,
    status,
    value_of,
    wait_tiered,
)
from tests.store_proxy import Fate, StoreProxy

pytestmark = pytest.mark.timeout(300)

CANARIES = {"AWS_SECRET_ACCESS_KEY": "canary-secret-0815", "AWS_SESSION_TOKEN": "canary-token-0815"}


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with running_object_store() as server:
        yield server


@pytest.fixture(scope="module")
def proxy(store: ObjectStore) -> Iterator[StoreProxy]:
    with StoreProxy(store.port) as running:
        yield running


@pytest.fixture(scope="module")
def broker(
    store: ObjectStore, proxy: StoreProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HeadraceProcess]:
    properties = {**broker_properties(store), "headrace.tier.endpoint": proxy.endpoint}
    place = Place(environment=ENVIRONMENT)
    with HeadraceProcess(tmp_path_factory.mktemp("tiered"), properties, place=place) as running:
        yield running


def failing(broker: HeadraceProcess) -> str:
    """What `headrace doctor` says of the store, and what to do; empty if nothing."""
    _, said = headrace(broker, "doctor", "tier", "--json")
    found = [each for each in json.loads(said)["findings"] if each["check"] == "tier-store-failing"]
    return json.dumps(found) if found else ""


@pytest.mark.parametrize(
    ("answer", "code", "cure"),
    [
        (400, "ExpiredToken", "restart it with new ones"),
        (403, "InvalidAccessKeyId", "give the process credentials that the store knows"),
        (403, "RequestTimeTooSkewed", "set the clock of this machine"),
    ],
)
def test_tier_invariant_11_a_store_that_refuses_is_told_with_a_cure_and_goes_on_by_itself(
    broker: HeadraceProcess, proxy: StoreProxy, answer: int, code: str, cure: str
) -> None:
    topic = create_topic(broker)
    produce(broker, topic, 0, 3000)
    wait_tiered(broker, topic, 1000)
    proxy.rule = lambda _: Fate(answer=answer, code=code)
    try:
        produce(broker, topic, 3000, 2000)
        eventually(lambda: code in failing(broker), 60, f"doctor tells of {code}")
        assert cure in failing(broker)
        begin = local_start(broker, topic)
        assert begin <= status(broker, topic)["tiered_end"] <= 3000, "what is not copied stays on the disk"
        assert read(broker, topic, 2000, first=3000)[-1] == (4999, value_of(4999))
        assert code in broker.output.read_text()
    finally:
        proxy.rule = None
    wait_tiered(broker, topic, 3000)
    eventually(lambda: failing(broker) == "", 60, "it answers again")
    assert read(broker, topic, 5000) == [(number, value_of(number)) for number in range(5000)]


def test_with_wrong_credentials_a_broker_serves_and_tells_no_secret(
    store: ObjectStore, tmp_path: Path
) -> None:
    wrong = Place(environment={**ENVIRONMENT, **CANARIES})
    with HeadraceProcess(tmp_path / "broker", broker_properties(store), place=wrong) as broker:
        topic = create_topic(broker)
        produce(broker, topic, 0, 3000)
        eventually(lambda: "restart it" in failing(broker), 60, "doctor tells why")
        assert local_start(broker, topic) == 0
        told = [headrace(broker, *each)[1] for each in (("config", "list", "--broker", "1"), ("doctor",))]
        told += [failing(broker), broker.output.read_text()]
        broker.stop()
        broker.place = Place(environment={**ENVIRONMENT, "AWS_SESSION_TOKEN": ""})
        broker.start()
        wait_tiered(broker, topic, 1000)
        assert read(broker, topic, 3000) == [(number, value_of(number)) for number in range(3000)]
    assert all(told)
    for text in told:
        assert not [each for each in CANARIES.values() if each in text]
