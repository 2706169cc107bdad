"""Our table of error codes against those of two other projects."""

from __future__ import annotations

import warnings

from kio.schema.errors import ErrorCode as KioErrorCode

from headrace.protocol.error_codes import RETRIABLE, ErrorCode

with warnings.catch_warnings():
    # kafka-python loads its schemas, while it is imported, in a way that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.errors import kafka_errors

NEWER_THAN_KIO = {
    "GROUP_DELETION_FAILED": 134,
    "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED": 135,
    "CONTROLLER_ID_NOT_REGISTERED": 136,
}
OTHER_NAMES_IN_KAFKA_PYTHON = {
    -1: "UNKNOWN",
    0: "NO_ERROR",
    6: "NOT_LEADER_FOR_PARTITION",
    10: "MESSAGE_SIZE_TOO_LARGE",
    17: "INVALID_TOPIC",
    39: "INVALID_REPLICATION_ASSIGNMENT",
}


def test_codes_and_names_are_those_of_kio() -> None:
    theirs = {each.name.upper(): int(each) for each in KioErrorCode}
    assert {each.name: int(each) for each in ErrorCode} == theirs | NEWER_THAN_KIO


def test_what_is_retriable_is_so_for_kio() -> None:
    theirs = {int(each) for each in KioErrorCode if each.retriable}
    assert {int(each) for each in RETRIABLE} == theirs


def test_codes_and_names_are_those_of_kafka_python() -> None:
    theirs = {code: error.message for code, error in kafka_errors.items() if code is not None}
    assert len(theirs) == 129
    assert {code: OTHER_NAMES_IN_KAFKA_PYTHON.get(code, ErrorCode(code).name) for code in theirs} == theirs


def test_codes_have_no_gaps() -> None:
    assert sorted(map(int, ErrorCode)) == list(range(-1, 137))
