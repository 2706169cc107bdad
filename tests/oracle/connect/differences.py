"""Every known difference between the REST interface of `headrace connect` and Apache Kafka Connect 4.3.1's.

They are compared as those of brokers are (`tests/oracle/differences.py`). `docs/compatibility.md` shows this
list to readers; `python -m tests.oracle.connect.document` writes it there.
"""

from __future__ import annotations

from typing import Final

from tests.oracle.differences import ABSENT, Difference

#: Answers that have one element for each setting.
_SETTINGS = r"settings of a (source|sink)"
_VALIDATED = (
    r"valid (source|sink)|without a (name|topic)|empty topic|tasks\.max .*|an unknown setting"
    r"|null as a value|a number as a value|sink with.*"
)
_ONE = r"body(\.configs)?\[[^]]+\]"

_PLUGINS = (
    Difference(
        "GET /connector-plugins",
        "other plugins",
        "Each worker lists what it has. Apache's has MirrorMaker 2 beside the file connectors; and "
        "converters, transforms and predicates, which are Spark's business here.",
        r"(all )?plugins",
        r"body(\.#|\[.*)",
    ),
    Difference(
        "GET /connector-plugins/P/config, PUT .../validate",
        "fewer settings",
        "Converters and transforms are given as Spark's columns and SQL; topics are made by the "
        "brokers' defaults; each source is exactly once, so that there is nothing to ask for.",
        f"{_SETTINGS}|{_VALIDATED}",
        rf"{_ONE}\..*",
        headrace=ABSENT,
    ),
    Difference(
        "the same",
        "further settings",
        "How large a batch is and how often a connector looks for work are a connector's own here.",
        f"{_SETTINGS}|{_VALIDATED}",
        rf"{_ONE}\..*",
        kafka=ABSENT,
    ),
    Difference(
        "the same",
        "their number and their groups",
        "It follows from the entries before.",
        f"{_SETTINGS}|{_VALIDATED}",
        r"body(\.configs)?\.#|body\.groups.*",
    ),
    Difference(
        "the same",
        "where a setting is shown, and how wide",
        "It follows as well: a place in a group is a number among its members.",
        _SETTINGS,
        rf"{_ONE}\.(order_in_group|width|display_name)",
    ),
    Difference(
        "the same",
        "errors.retry.timeout is -1 by default",
        "A connector that failed is started again by itself, without end. Kafka Connect leaves it "
        "failed until somebody calls.",
        f"{_SETTINGS}|{_VALIDATED}",
        r"body(\.configs)?\[errors\.retry\.timeout\]\..*",
        kafka="0",
        headrace="-1",
    ),
    Difference(
        "the same",
        "the version of a plugin",
        "It is Headrace's.",
        f"{_SETTINGS}|{_VALIDATED}",
        r"body(\.configs)?\[connector\.plugin\.version\]\..*",
    ),
    Difference(
        "the same",
        "an INT where Kafka has a SHORT",
        "There is one kind of whole number.",
        _SETTINGS,
        r"body\[errors\.deadletterqueue\.topic\.replication\.factor\]\.type",
    ),
    Difference(
        "PUT .../validate",
        "the worker's own converters are not shown",
        "Workers have none: a connector's converter counts, or the connector's own way.",
        _VALIDATED,
        r"body\.configs\[(key|value)\.converter\]\.value\.value",
        headrace="None",
    ),
    Difference(
        "PUT .../validate",
        "null is the default",
        "Kafka Connect shows null and runs with the default. Here the value is shown with which it runs.",
        "null as a value",
        r"body\.configs\[batch\.size\]\.value\.value",
    ),
)

_REQUESTS = (
    Difference(
        "all with a body",
        "400 for a body of another form",
        "500 says that it is the worker's fault.",
        r"(validate|create|put|patch|source: alter): .*|(put|patch) .*|validate.*",
        r"status|body\.error_code",
        kafka="500",
        headrace="400",
    ),
    Difference(
        "PATCH /connectors/N/offsets",
        "404 for a connector that does not exist, whatever the body",
        "Kafka Connect looks at the body first.",
        "alter offsets of nobody",
        r"status|body\.error_code",
        kafka="400",
        headrace="404",
    ),
    Difference(
        "GET /connectors/N/offsets",
        "a sink's offset is behind the marker that ends a transaction",
        "What Kafka Connect commits is behind the last record, so its lag never comes to nothing where "
        "transactions are written.",
        r"sink: offsets.*",
        r"body\.offsets\[.*\]\.offset\.kafka_offset",
        kafka="5",
        headrace="6",
    ),
    Difference(
        "GET /connectors/N/tasks",
        "task.class",
        "A task is a part of the connector's own class.",
        r"made: tasks|tasks have it",
        r"body\[.*\]\.config\.task\.class",
    ),
)

DIFFERENCES: Final[tuple[Difference, ...]] = (*_PLUGINS, *_REQUESTS)
