"""kazoo's errors in our words."""

from __future__ import annotations

from kazoo.exceptions import BadVersionError, InvalidACLError, NoAuthError, NodeExistsError, NoNodeError

from headrace.coordination.ensemble.requests import (
    ConnectionBroken,
    Exists,
    Missing,
    NotPermitted,
    OtherVersion,
)


def translate(error: BaseException) -> Exception:
    if isinstance(error, NoNodeError):
        return Missing()
    if isinstance(error, NodeExistsError):
        return Exists()
    if isinstance(error, BadVersionError):
        return OtherVersion()
    if isinstance(error, NoAuthError):
        return NotPermitted(
            "ZooKeeper does not let this broker in: its nodes belong to somebody else. All brokers need a"
            " certificate of the same subject (zookeeper.ssl.keystore.location), or the same"
            " headrace.zookeeper.digest, as the one that made them"
        )
    if isinstance(error, InvalidACLError):
        return NotPermitted(
            "ZooKeeper does not know who this broker is, so that nodes can belong to nobody: its servers must"
            " ask for certificates (ssl.clientAuth=need or want), or set headrace.zookeeper.digest"
        )
    return ConnectionBroken(f"ZooKeeper did not confirm it: {type(error).__name__} {error}".rstrip())
