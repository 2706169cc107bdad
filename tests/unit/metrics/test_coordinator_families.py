from __future__ import annotations

from headrace.metrics.coordinator_families import coordinator_families
from headrace.metrics.coordinators import CoordinatorCounts, CoordinatorMetrics


def test_groups_and_transactions_have_the_names_that_kafka_gives_them() -> None:
    metrics = CoordinatorMetrics()
    metrics.verification_failures = 7
    counts = CoordinatorCounts(
        classic_groups={"Stable": 2, "Empty": 1},
        consumer_groups={"Reconciling": 4},
        transactional_ids={"Ongoing": 5},
        markers_without_leader=6,
        ends_to_write_again=8,
        producers=9,
        partitions_with_late_transactions=10,
    )
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in coordinator_families(metrics, counts)
        for sample in family.samples
    }
    groups = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    markers = "kafka_coordinator_transaction_transactionmarkerchannelmanager"
    wanted = {
        (groups,): 3,
        (f"{groups}stable",): 2,
        (f"{groups}empty",): 1,
        (f"{groups}dead",): 0,
        ("kafka_server_group_coordinator_metrics_group_count", "classic"): 3,
        ("kafka_server_group_coordinator_metrics_group_count", "consumer"): 4,
        ("kafka_server_group_coordinator_metrics_consumer_group_count", "Reconciling"): 4,
        ("kafka_server_group_coordinator_metrics_consumer_group_count", "Stable"): 0,
        ("headrace_transactional_ids", "Ongoing"): 5,
        (f"{markers}_unknowndestinationqueuesize",): 6,
        (f"{markers}_logappendretryqueuesize",): 8,
        ("kafka_server_addpartitionstotxnmanager_verificationfailurerate_count",): 7,
        ("kafka_server_replicamanager_produceridcount",): 9,
        ("kafka_server_replicamanager_partitionswithlatetransactionscount",): 10,
    }
    assert found | wanted == found
