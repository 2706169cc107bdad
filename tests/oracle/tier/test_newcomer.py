"""A replica that begins with nothing, of Apache Kafka and of Headrace: what it answers once it leads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.apache_kafka import CACHE
from tests.broker_process import Place
from tests.chaos.apache_kafka_cluster import ApacheKafkaCluster
from tests.cluster.tiered_store import ENVIRONMENT
from tests.cluster_process import ClusterProcess, HeadraceCluster
from tests.directories.object_store import running_object_store
from tests.oracle.comparison import Found, compare, report, require_reasons, stale
from tests.oracle.conftest import COMPARED
from tests.oracle.plain import Flat
from tests.oracle.tier import newcomer_script
from tests.oracle.tier.differences import OF_A_NEWCOMER
from tests.oracle.tier.test_same_history import headrace_properties, kafka_properties

pytestmark = pytest.mark.timeout(900)

ONE_COPY = {
    f"{topic}.{setting}": "1"
    for topic in ("offsets.topic", "transaction.state.log")
    for setting in ("replication.factor", "num.partitions")
} | {"transaction.state.log.min.isr": "1"}


class TieredKafkaCluster(ApacheKafkaCluster):
    further_jars = (CACHE / "kafka-tier-4.3.1",)


def talk(cluster: ClusterProcess) -> dict[str, Flat]:
    with cluster:
        return newcomer_script.run(cluster)


@pytest.fixture(scope="module")
def answers(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[dict[str, Flat], dict[str, Flat]]:
    """Of Apache Kafka and of Headrace."""
    with running_object_store() as store, ThreadPoolExecutor(2) as pool:
        history = tmp_path_factory.mktemp("history")
        clusters: list[ClusterProcess] = [
            TieredKafkaCluster(
                tmp_path_factory.mktemp("kafka"), 2, {**kafka_properties(history), **ONE_COPY}
            ),
            HeadraceCluster(
                tmp_path_factory.mktemp("headrace"),
                2,
                {**headrace_properties(store), **ONE_COPY},
                places=[Place(environment=ENVIRONMENT)] * 2,
            ),
        ]
        kafka, headrace = pool.map(talk, clusters)
    fields = sum(map(len, kafka.values()))
    request.config.stash[COMPARED].append(f"{fields:,} fields of replicas that began with nothing")
    return kafka, headrace


@pytest.fixture(scope="module")
def found(answers: tuple[dict[str, Flat], dict[str, Flat]]) -> list[Found]:
    result = compare(*answers)
    report({"newcomer": result}, "HEADRACE_ORACLE_NEWCOMER_REPORT")
    return result


def test_no_answer_of_a_newcomer_differs_without_a_reason(found: list[Found]) -> None:
    require_reasons(found, OF_A_NEWCOMER)


def test_every_listed_difference_of_a_newcomer_still_occurs(found: list[Found]) -> None:
    assert not stale(found, OF_A_NEWCOMER)


def test_both_newcomers_serve_what_they_never_had(answers: tuple[dict[str, Flat], dict[str, Flat]]) -> None:
    """Nothing is the same as nothing."""
    for broker in answers:
        for move in (1, 2):
            assert any("record[0]" in path for path in broker[f"after move {move}: from 0 at level 0 v12"])
            aborted = broker[f"after move {move}: from 10 at level 1 v12"]
            assert aborted["responses[moved].partitions[0].aborted_transactions.#"] == 1
