"""What users may do with subjects: the brokers' rules about the topics that the subjects belong to.

The rules are read from the brokers, with the registry's own rights, and kept for some seconds.
"""

from __future__ import annotations

import asyncio
from typing import Final

from headrace.client.acls import authorizer_settings, describe_acls
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, Refused
from headrace.protocol.error_codes import ErrorCode
from headrace.registry import errors
from headrace.security.acl import CLUSTER_NAME, Operation, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.hosts import java_host
from headrace.security.principal import Principal
from headrace.security.rights import Authorizer, Rights, Wanted

KEPT_SECONDS: Final = 5.0
"""So long a change of the rules may need."""
FAILED_SECONDS: Final = 1.0
REQUEST_SECONDS: Final = 10.0
_OF_TOPICS: Final = ("-value", "-key")


def topic_of(subject: str) -> str:
    """`orders-value` and `orders-key` belong to the topic orders. Any other subject is asked for as a topic
    of its own name."""
    for ending in _OF_TOPICS:
        if subject.endswith(ending) and subject != ending:
            return subject.removesuffix(ending)
    return subject


class Access:
    """Of one request. Without rights, where no authorizer is on, everything is allowed."""

    def __init__(self, rights: Rights | None) -> None:
        self._rights = rights

    def may_read(self, subject: str) -> bool:
        """For lists, which leave out what the user may not see."""
        return self._rights is None or any(
            self._rights.allows_silently(operation, kind, name or "")
            for operation, kind, name in _reading(subject)
        )

    def require_read(self, subject: str) -> None:
        self._require(_reading(subject), "READ or DESCRIBE", subject)

    def require_write(self, subject: str) -> None:
        self._require([(Operation.WRITE, ResourceType.TOPIC, topic_of(subject))], "WRITE", subject)

    def require_alter(self, subject: str) -> None:
        self._require([(Operation.ALTER, ResourceType.TOPIC, topic_of(subject))], "ALTER", subject)

    def require_administration(self) -> None:
        """Of what concerns all subjects."""
        self._require([(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)], "ALTER", None)

    def _require(self, wanted: list[Wanted], words: str, subject: str | None) -> None:
        """Raises RegistryError."""
        if self._rights is None or self._rights.allows_any(*wanted):
            return
        where = "the cluster" if subject is None else f"topic {topic_of(subject)}"
        raise errors.forbidden(f"{self._rights.principal} needs {words} on {where}")


NO_LIMITS: Final = Access(None)


def _reading(subject: str) -> list[Wanted]:
    topic = topic_of(subject)
    return [(Operation.READ, ResourceType.TOPIC, topic), (Operation.DESCRIBE, ResourceType.TOPIC, topic)]


class Rules:
    """Close it. Use `open` first, which says whether the registry may read them at all."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._authorizer: Authorizer | None = None
        self._failure: ClientFailure | None = None
        self._until = 0.0
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Raises ClientFailure with what to grant."""
        try:
            await self._renew()
        except Refused as error:
            if error.code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                raise
            raise ClientFailure(
                "the registry asks users for rights, and may not read the rules itself",
                "allow its own user DESCRIBE and DESCRIBE_CONFIGS on the cluster: headrace acl add",
            ) from None

    async def close(self) -> None:
        await self._cluster.close()

    async def access(self, principal: Principal, host: str) -> Access:
        """As `rights`, for subjects."""
        found = await self.rights(principal, host)
        return NO_LIMITS if found is None else Access(found)

    async def rights(self, principal: Principal, host: str) -> Rights | None:
        """By rules that are some seconds old at most; None where no authorizer is on. Raises ClientFailure
        where nobody tells them."""
        async with self._lock:
            if asyncio.get_running_loop().time() >= self._until:
                try:
                    await self._renew()
                except ClientFailure as error:
                    # Whoever waits meanwhile is told the same, and does not ask once more.
                    self._failure, self._until = error, asyncio.get_running_loop().time() + FAILED_SECONDS
        if self._failure is not None:
            raise self._failure
        if self._authorizer is None:
            return None
        return self._authorizer.rights_of(str(principal), _as_java_writes(host))

    async def _renew(self) -> None:
        asked_at = asyncio.get_running_loop().time()
        try:
            rules = await describe_acls(self._cluster)
        except Refused as error:
            if error.code != ErrorCode.SECURITY_DISABLED:
                raise
            self._authorizer = None
        else:
            settings = await authorizer_settings(self._cluster)
            index = AclIndex(rules, allow_everyone_if_no_acl_found=settings.allow_everyone_if_no_acl_found)
            self._authorizer = Authorizer(
                index, super_users=settings.super_users, mode="shadow" if settings.is_shadow else "enforce"
            )
        self._until, self._failure = asked_at + KEPT_SECONDS, None


def _as_java_writes(host: str) -> str:
    try:
        return java_host(host)
    except ValueError:
        return host
