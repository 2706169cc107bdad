"""Every known difference between what the two brokers answer to people with few rights, with its reason.

Those of `tests/oracle/differences.py` are not here: they have nothing to do with rights.
"""

from __future__ import annotations

from typing import Final

from tests.oracle.differences import ABSENT, Difference

_IN_ORDER: Final = (
    r"coordinators of (groups|transactions)|(all )?offsets of groups|describe producers|describe transactions"
)
"""Kafka keeps the order of these requests."""


def _asked(step: str) -> str:
    """By anybody, in any state of the rules."""
    return rf"\w+: \w+: ({step}) v\d+"


DIFFERENCES: Final = (
    Difference(
        "all lists",
        "another order of entries that have names",
        "Kafka lists most things as its hash tables have them, what is denied before or behind them. "
        "Headrace keeps the order of the request, with what is denied at the end. Clients look "
        "for names. Where Kafka "
        "keeps the order of the request (FindCoordinator, the groups of OffsetFetch, DescribeProducers, "
        "DescribeTransactions), so does Headrace.",
        rf"(?!\w+: \w+: ({_IN_ORDER}) v).*",
        r".*\.order",
    ),
    Difference(
        "Fetch",
        "replicas fetch on the brokers' listener only",
        "Who has CLUSTER_ACTION may fetch as a replica from any listener of Kafka's. Headrace serves it "
        "where brokers are, and denies it elsewhere (TOPIC_AUTHORIZATION_FAILED).",
        _asked("fetch as a replica"),
        r"responses\[.*\]\.partitions\[0\]\.(error_code|current_leader\..*)",
        kafka="6|0|1",
        headrace="29|-1",
    ),
    Difference(
        "DescribeAcls",
        "a filter with an unknown code is refused",
        "Kafka answers an empty list, Headrace INVALID_REQUEST, as both do in DeleteAcls.",
        r"shapes: describe of an unknown .* v3",
        r"error_code",
        kafka="0",
        headrace="42",
    ),
    Difference(
        "AlterConfigs",
        "all configs of the cluster can be replaced",
        "Kafka answers INVALID_CONFIG, because that would remove min.insync.replicas, which it sets by "
        "itself.",
        _asked("validate other configs"),
        r"responses\[4/\]\.error_code",
        kafka="40",
        headrace="0",
    ),
    Difference(
        "CreateTopics, CreatePartitions, DeleteTopics, IncrementalAlterConfigs",
        "rights come before what is wrong with an entry",
        "An entry that is there twice, that names a topic by both or by neither of name and id, or that "
        "alters another broker than the one that was asked, is INVALID_REQUEST to everybody in Kafka. "
        "Headrace tells that to those who have the right: what is denied reaches no handler.",
        _asked(
            r"create twice|more partitions twice|delete by name and id|delete by neither"
            r"|validate an alteration of 4 '99'|validate an alteration, twice"
        ),
        r"(topics|results|responses)\[.*\]\.(error_code|topic_id)",
        kafka="42|<id of .*",
        headrace="29|31|100|0{8}-.*",
    ),
    Difference(
        "IncrementalAlterConfigs",
        "a resource that is there twice is answered once",
        "Kafka answers each mention.",
        _asked("validate an alteration, twice"),
        r"responses\.#",
        kafka="8",
        headrace="4",
    ),
    Difference(
        "DescribeTopicPartitions",
        "a cursor need not be one of the topics that are named",
        "Kafka answers INVALID_REQUEST for all of them. Headrace goes on behind it.",
        _asked("partitions from an absent cursor on"),
        r"topics.*",
        kafka=rf"(?!29).*|{ABSENT}",
    ),
    Difference(
        "DescribeTopicPartitions",
        "topics that do not exist take no place on a page",
        "Where a page of Kafka's is full, such a topic begins the next.",
        _asked("(one|two) partitions? (by name|from a cursor on)"),
        r"next_cursor\.topic_name|topics\.#|topics\[.*absent\]\..*",
    ),
    Difference(
        "AlterClientQuotas",
        "an entity that is named twice is refused",
        "Kafka keeps one of the two, whichever its hash table does, and says that it was altered.",
        r"shapes: alter quotas of (one user|a kind) twice v1",
        r"entries.*",
    ),
    Difference(
        "AlterUserScramCredentials",
        "a user who is named twice is told that first",
        "Kafka answers RESOURCE_NOT_FOUND if the first of the two deletes what is not there, Headrace "
        "DUPLICATE_RESOURCE in any case.",
        r"shapes: credentials, made.* v0",
        r"results\[.*\]\.error_code",
        kafka="91",
        headrace="92",
    ),
    Difference(
        "DescribeUserScramCredentials",
        "a refusal names the users",
        "Kafka refuses each with an empty name.",
        _asked("describe credentials, (named|twice)"),
        r"results\..*|results\[.*\]\..*",
        kafka=rf"31|0|2||{ABSENT}",
        headrace=rf"31|0|1|{ABSENT}|stranger|user-.*",
    ),
    Difference(
        "DescribeUserScramCredentials",
        "a refusal to tell all users is sent",
        "Kafka's handler fails, and never answers.",
        r"nothing: alice: describe all credentials, denied",
        r"connection|error_code",
        kafka=rf"silent|{ABSENT}",
        headrace=rf"31|{ABSENT}",
    ),
    Difference(
        "RenewDelegationToken, ExpireDelegationToken",
        "no time is -1",
        "Kafka answers 0 beside an error here, and -1 where a token is not made.",
        _asked("(renew|expire) .* token.*"),
        r"expiry_timestamp_ms",
        kafka="0",
        headrace="-1",
    ),
)
