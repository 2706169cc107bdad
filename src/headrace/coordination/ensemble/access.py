"""Whose the nodes are. A node keeps the ACL that it was made with, so those that were made before ACLs were
switched on are open to everybody until `hand_over` has gone through them.

Children are deleted by the right of their parent. So a cluster without a chroot needs an ACL on `/` as well,
and sets it if nobody else is there. With a chroot, `/` is left to others: no node that has children can be
deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE

from headrace.config.zookeeper_address import ZooKeeperAddress
from headrace.config.zookeeper_security import ZooKeeperSecurity
from headrace.coordination.ensemble.paths import Paths
from headrace.coordination.ensemble.requests import acls, children, put_acls
from headrace.coordination.ensemble.session import Session

_LOG: Final = logging.getLogger("headrace.zookeeper")
_OF_ZOOKEEPER: Final = frozenset(("zookeeper",))
_NAMED: Final = 3
"""Open nodes that a warning names."""


async def close_own_root(session: Session, paths: Paths) -> None:
    """Give `/` to us alone, where the ensemble is ours alone."""
    if paths.chroot:
        return
    (names,) = await session.ask(children("/"))
    own = {path.removeprefix("/") for path in paths.roots()}
    if own.issuperset(set(names) - _OF_ZOOKEEPER) and await open_nodes(session, ["/"]):
        await session.change(put_acls("/", CREATOR_ALL_ACL))


async def warn_of_open_nodes(session: Session, paths: Paths) -> None:
    """Looks at the nodes that every cluster has, and at the oldest batch of the log."""
    (batches,) = await session.ask(children(paths.log))
    oldest = [f"{paths.log}/{name}" for name in sorted(batches or ())[:1]]
    found = await open_nodes(session, [paths.chroot or "/", *paths.of_cluster(), *oldest])
    if found:
        _LOG.warning(
            "ZooKeeper nodes are open to everybody who reaches it, %s among them: when all brokers run with"
            " zookeeper.set.acl=true, run `headrace cluster secure-zookeeper --config FILE` with the file of"
            " one of them",
            ", ".join(found[:_NAMED]),
        )


async def open_nodes(session: Session, paths: Iterable[str]) -> list[str]:
    """Those of `paths` that everybody may read or change."""
    wanted = list(paths)
    answers = await session.ask(*(acls(path) for path in wanted))
    return [
        path
        for path, answer in zip(wanted, answers, strict=True)
        if answer is not None and any(entry.id.scheme == "world" for entry in answer[0])
    ]


async def hand_over(
    address: ZooKeeperAddress, security: ZooKeeperSecurity, *, to_everybody: bool = False, timeout_ms: int
) -> int:
    """Give every node of a cluster to us alone, or to everybody. Returns how many there are.

    Brokers may run. What one of them makes meanwhile has the ACL of that broker's own settings.
    """
    session = Session(address, timeout_ms=timeout_ms, connect_timeout_ms=timeout_ms, security=security)
    await session.start()
    try:
        paths = Paths(address.chroot)
        given = OPEN_ACL_UNSAFE if to_everybody else CREATOR_ALL_ACL
        roots = [paths.chroot] if paths.chroot else ["/", *paths.roots()]
        return await _give(session, roots, given)
    finally:
        await session.close()


async def _give(session: Session, roots: list[str], given: Any) -> int:
    """A parent before its children: what is made below it meanwhile is met, too."""
    count = 0
    level = roots
    while level:
        changed = await session.ask(*(put_acls(path, given) for path in level))
        count += sum(answer is not None for answer in changed)
        parents = [path for path in level if path != "/"]
        answers = await session.ask(*(children(path) for path in parents))
        level = [
            f"{path}/{name}"
            for path, names in zip(parents, answers, strict=True)
            for name in sorted(names or ())
        ]
    return count
