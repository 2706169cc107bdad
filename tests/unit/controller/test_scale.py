"""The bench of the controller's scale, made small: its figures must not be out of all proportion."""

from __future__ import annotations

from bench.controller_scale import Shape, apply, build, measure, table

SMALL = Shape(topics=40, partitions=250, brokers=200, hosts=20)


def test_a_lost_host_is_decided_and_encoded_in_time() -> None:
    found = measure(SMALL)
    assert found.partitions == 10_000
    assert 1000 < found.changes < 2000, "a twentieth of the brokers, three replicas"
    assert found.image_bytes_per_partition < 300
    assert found.decided_and_encoded_s < 2.0, "a hundredth of the load, all of the time"
    assert "10,000" in table(SMALL, found)


def test_the_loss_leaves_no_trace_of_the_host() -> None:
    machine = build(SMALL)
    lost = set(range(19, 200, 20))
    touched = {
        (topic.name, i)
        for topic in machine.image.topics_by_name.values()
        for i in range(len(topic))
        if lost & set(topic.isr(i))
    }
    result = machine.fence_brokers(lost)
    assert result.response == len(touched)
    apply(machine, result)
    for topic in machine.image.topics_by_name.values():
        assert not topic.partitions_with_any_isr_member(lost)
        assert not topic.leaderless_partitions()
        assert not lost & set(topic.leaders)
