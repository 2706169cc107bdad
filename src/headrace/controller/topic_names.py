"""Which names a topic may have. A name becomes part of a path and of metric names."""

from __future__ import annotations

import re

from headrace.core.errors import InvalidTopic

LONGEST_NAME = 249
"""So that `<name>-<partition>` and the suffix of a directory to be deleted fit in 255 bytes."""

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
METADATA_TOPIC = "__cluster_metadata"

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def is_topic_name(name: str) -> bool:
    try:
        check_topic_name(name)
    except InvalidTopic:
        return False
    return True


def check_topic_name(name: str) -> None:
    if not name:
        raise InvalidTopic("a topic name may not be empty")
    if name in (".", ".."):
        raise InvalidTopic(f"a topic may not be named {name!r}")
    if len(name) > LONGEST_NAME:
        raise InvalidTopic(f"a topic name has at most {LONGEST_NAME} characters, this one has {len(name)}")
    if not _LEGAL.fullmatch(name):
        raise InvalidTopic(
            f"topic name {name!r} has characters other than ASCII letters, digits, '.', '_', '-'"
        )
