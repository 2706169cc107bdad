"""Three topics, by the key of a row. They are compacted: what counts is the latest state of each row."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, NewTopic

#: Named as the connector of changes names them: PREFIX.SCHEMA.TABLE. The sink makes tables of such names.
CUSTOMERS, ORDERS = "shop.public.customers", "shop.public.orders"
ENRICHED = "shop.public.orders_enriched"
ALL = (CUSTOMERS, ORDERS, ENRICHED)
PARTITIONS = 2


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(name, PARTITIONS, config={"cleanup.policy": "compact"}) for name in ALL]
    for created in admin.create_topics(topics).values():
        created.result(60)
