"""Rights follow: what `acls.py` decides, carried out."""

from __future__ import annotations

import time
from collections.abc import Mapping

from headrace.client.acls import create_acls, delete_acls, describe_acls
from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.protocol.error_codes import ErrorCode
from headrace.security.acl import AclRule
from headrace.spark.mirror import acls
from headrace.spark.mirror.clusters import Sides
from headrace.spark.mirror.problems import MirrorRefused
from headrace.spark.mirror.translation_topic import Merger, TranslationTopic


async def follow(
    sides: Sides, targets: Mapping[str, str], topic: TranslationTopic, merger: Merger
) -> acls.Change:
    """What was changed on the target. What is to be given is remembered first: who dies in between still
    knows that it is his."""
    await topic.refresh()
    wanted = acls.wanted(await _rules(sides.source, "source"), targets)
    given = topic.translation.given
    change = acls.change(wanted, await _rules(sides.target, "target"), given)
    if given | change.given != given:
        await merger.write([acls.record_of(given | change.given, _now_ms())])
    if change.create:
        await create_acls(sides.target, change.create)
    if change.delete:
        await delete_acls(sides.target, change.delete)
    if change.given != given | change.given:
        await merger.write([acls.record_of(change.given, _now_ms())])
    return change


async def _rules(cluster: Cluster, side: str) -> list[AclRule]:
    try:
        return await describe_acls(cluster)
    except Refused as error:
        if error.code == ErrorCode.SECURITY_DISABLED:
            raise MirrorRefused(
                f"rights cannot be carried: the {side} has no authorizer. Configure one there, or take "
                "[acls] out of the mirror's configuration"
            ) from None
        if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise MirrorRefused(
                f"rights cannot be carried: the mirror's user may not see those of the {side}. Give it "
                "DESCRIBE on the cluster there, and on the target ALTER as well"
            ) from None
        raise


def _now_ms() -> int:
    return int(time.time() * 1000)
