"""The topics of the shop, and what is in their records."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, NewTopic

PAGE_VIEWS = "page-views"
ORDERS = "orders"
#: What the running aggregate writes: how often each page was seen in each five seconds.
PAGE_TRAFFIC = "page-traffic"

VIEW_SCHEMA = "visitor string, page string, referrer string"


def create(bootstrap: str, brokers: int) -> None:
    """An order's key is its id, and its last record is its state: the log needs to keep no more than that."""
    replicas = min(brokers, 3)
    wanted = [
        NewTopic(PAGE_VIEWS, num_partitions=3, replication_factor=replicas),
        NewTopic(ORDERS, 3, replicas, config={"cleanup.policy": "compact"}),
        NewTopic(PAGE_TRAFFIC, 1, replicas),
    ]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics(wanted).values():
        created.result(30)
