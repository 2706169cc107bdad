from __future__ import annotations

from uuid import UUID

import pytest

from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.stored.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from headrace.protocol.stored.partition_change_record import PartitionChangeRecord


def test_equality_and_text() -> None:
    topic = CreatableTopic(name="t", num_partitions=3)
    assert topic == CreatableTopic(name="t", num_partitions=3)
    assert topic != CreatableTopic(name="t", num_partitions=4)
    assert topic != "t"
    assert repr(DeleteTopicState(name="t")).startswith("DeleteTopicState(name='t', topic_id=UUID(")


def test_fields_are_only_those_of_the_schema() -> None:
    with pytest.raises(AttributeError):
        CreatableTopic().partitions = 1  # type: ignore[attr-defined]  # the point of the test
    with pytest.raises(TypeError):
        {CreatableTopic()}


def test_defaults_are_not_shared() -> None:
    one, two = CreateTopicsRequest(), CreateTopicsRequest()
    one.topics.append(CreatableTopic())
    assert two.topics == []


def test_null_can_be_given_where_the_default_is_empty() -> None:
    assert MetadataRequest().topics == []
    assert MetadataRequest(topics=None).topics is None
    assert MetadataRequest(topics=None).to_bytes(1) == b"\xff\xff\xff\xff"
    assert MetadataRequest(topics=[]).to_bytes(1) == b"\0\0\0\0"


def test_null_is_refused_in_a_version_without_it() -> None:
    with pytest.raises(ValueError, match="null"):
        MetadataRequest(topics=None, allow_auto_topic_creation=True).to_bytes(0)


def test_a_field_that_matters_cannot_be_lost() -> None:
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    with pytest.raises(ValueError, match=r"MetadataRequest.allow_auto_topic_creation .* version 3"):
        request.to_bytes(3)
    assert request.to_bytes(4)


def test_a_field_that_may_be_ignored_is_dropped() -> None:
    response = MetadataResponse(cluster_id="c", throttle_time_ms=5)
    assert MetadataResponse.from_bytes(response.to_bytes(1), 1) == MetadataResponse()
    assert MetadataResponse.from_bytes(response.to_bytes(3), 3) == response


def test_a_field_of_old_versions_has_its_default_in_new_ones() -> None:
    topic = MetadataRequestTopic(name=None, topic_id=UUID(int=7))
    raw = MetadataRequest(topics=[topic]).to_bytes(12)
    assert MetadataRequest.from_bytes(raw, 12).topics == [topic]
    old = DeleteTopicsRequest(topic_names=["a"])
    assert DeleteTopicsRequest.from_bytes(old.to_bytes(5), 5) == old
    assert DeleteTopicsRequest.from_bytes(old.to_bytes(6), 6) == DeleteTopicsRequest()


def test_tagged_fields_are_written_only_when_they_say_something() -> None:
    plain = FetchRequest(topics=[FetchTopic(partitions=[FetchPartition(partition=1)])])
    with_cluster = FetchRequest(topics=plain.topics, cluster_id="c")
    # Tag 0, two bytes long: the compact string "c".
    assert with_cluster.to_bytes(12) == plain.to_bytes(12)[:-1] + b"\x01\x00\x02\x02c"
    assert FetchRequest.from_bytes(with_cluster.to_bytes(12), 12) == with_cluster


def test_unknown_tagged_fields_are_passed_over() -> None:
    raw = FetchRequest(rack_id="r").to_bytes(12)
    unknown = raw[:-1] + b"\x02\x00\x02\x02c\x63\x03abc"
    assert FetchRequest.from_bytes(unknown, 12) == FetchRequest(rack_id="r", cluster_id="c")


def test_no_change_and_no_replicas_differ_in_a_stored_record() -> None:
    """Null means unchanged, empty means empty; taking one for the other would lose an ISR."""
    unchanged, emptied = PartitionChangeRecord(), PartitionChangeRecord(isr=[])
    assert unchanged.isr is None
    assert unchanged.to_bytes(0) != emptied.to_bytes(0)
    assert PartitionChangeRecord.from_bytes(emptied.to_bytes(0), 0).isr == []


def test_a_tagged_structure_that_may_be_null() -> None:
    """Its default is an empty structure, so null has to be written: tag 0, one byte, 0."""
    absent = ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    plain = ConsumerGroupMemberMetadataValue()
    assert plain.classic_member_metadata is not None
    assert absent.to_bytes(0) == plain.to_bytes(0)[:-1] + b"\x01\x00\x01\x00"
    assert ConsumerGroupMemberMetadataValue.from_bytes(absent.to_bytes(0), 0) == absent
