"""The state of a simulated cluster as text, for whoever looks into a run that failed."""

from __future__ import annotations

from tests.simulation.cluster import SimulatedCluster, SimulatedHost


def describe(cluster: SimulatedCluster) -> str:
    ensemble = cluster.ensemble
    lines = [
        f"at {cluster.scheduler.now:.3f} s: metadata ends at {ensemble.end},"
        f" controller {ensemble.active_controller},"
        f" members {[(member.broker_id, member.epoch) for member in ensemble.members().values()]}"
    ]
    for host in cluster.hosts:
        lines += _host(host)
    return "\n".join(lines)


def _host(host: SimulatedHost) -> list[str]:
    process = host.process
    if process is None:
        return [f"{host.name}: no process, {'power' if host.has_power else 'no power'}"]
    state = [
        "paused" if process.loop.is_paused else "",
        "ready" if process.is_ready else "starting",
        "stopping" if process.is_stopping else "",
    ]
    broker = process.broker
    if broker is None:
        return [f"{process.loop.name}: {' '.join(filter(None, state))}"]
    session = "" if process.coordination is None else process.coordination.session.value
    fenced = {each.broker_id: (each.epoch, each.fenced) for each in broker.metadata.image.brokers.values()}
    role = "the active controller" if broker.controller.is_active else f"follows {broker.node.controller_id}"
    lines = [
        f"{process.loop.name}: {' '.join(filter(None, state))}, session {session},"
        f" epoch {broker.node.broker_epoch}, metadata {broker.metadata.store.end}, {role},"
        f" brokers (epoch, fenced) {fenced}"
    ]
    for topic in broker.metadata.image.topics_by_name.values():
        for index in range(len(topic)):
            row = topic.state(index)
            lines.append(
                f"    {topic.name}-{index}: leader {row.leader} in {row.leader_epoch}/{row.partition_epoch},"
                f" replicas {row.replicas}, isr {row.isr}, elr {row.exceptional.elr}"
            )
    for partition in broker.partitions:
        lines.append(
            f"    {partition.topic_partition}: {partition.role.name} in {partition.leader_epoch}/"
            f"{partition.partition_epoch}, log {partition.log.log_start_offset}..{partition.log.end_offset},"
            f" high watermark {partition.high_watermark}"
        )
    return lines
