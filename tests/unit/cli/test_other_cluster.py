"""What is said where a cluster other than that of --bootstrap does not do what is asked."""

from __future__ import annotations

import pytest

from headrace.cli.other_cluster import reached_by
from headrace.client.errors import ClientFailure, Refused, Unreachable
from headrace.client.refusals import refusal
from headrace.protocol.error_codes import ErrorCode


def test_an_address_where_nobody_listens_is_that_of_the_option() -> None:
    with pytest.raises(ClientFailure) as raised, reached_by("--source", "--source-config"):
        raise Unreachable("there", 9092)
    assert "--source names the other cluster" in raised.value.hint
    assert "--source-config" in raised.value.hint
    assert "--bootstrap" not in raised.value.hint


def test_a_refusal_says_whose_it_is() -> None:
    with pytest.raises(Refused) as raised, reached_by("--source", "--source-config"):
        raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic t at the source")
    assert raised.value.hint.startswith("that is the cluster of --source: ")
