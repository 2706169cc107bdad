"""A broker whose topics have their history in a bucket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker_process import HeadraceProcess, Place
from tests.cluster.tiered_store import ENVIRONMENT, broker_properties
from tests.directories.object_store import ObjectStore, running_object_store
from tests.spark.segments.histories import Bucket


@pytest.fixture(scope="package")
def store() -> Iterator[ObjectStore]:
    with running_object_store() as server:
        yield server


@pytest.fixture(scope="package")
def tiered(store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadraceProcess]:
    directory = tmp_path_factory.mktemp("tiered")
    with HeadraceProcess(
        directory, broker_properties(store), place=Place(environment=ENVIRONMENT)
    ) as running:
        yield running


@pytest.fixture
def bucket(tiered: HeadraceProcess) -> Bucket:
    said = tiered.properties
    return Bucket(
        tier=said["headrace.tier.url"],
        endpoint=said["headrace.tier.endpoint"],
        region=said["headrace.tier.region"],
    )
