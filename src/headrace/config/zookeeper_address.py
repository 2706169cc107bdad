"""Where the ensemble is: host:port,host:port/chroot, as ZooKeeper's own clients write it."""

from __future__ import annotations

import re
from typing import NamedTuple

from headrace.core.errors import ConfigError

DEFAULT_PORT = 2181

_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:/\[\]\s]+)(?::([0-9]{1,5}))?")
_CHROOT = re.compile(r"(/[^/\s]+)+")


class ZooKeeperAddress(NamedTuple):
    servers: tuple[tuple[str, int], ...]
    chroot: str
    """"" for the root, otherwise it begins with a slash and does not end with one."""

    @property
    def hosts(self) -> str:
        """host:port,host:port, without the chroot."""
        return ",".join(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.servers
        )

    def __str__(self) -> str:
        return self.hosts + self.chroot


def parse_zookeeper_connect(
    text: str | None, property_name: str = "zookeeper.connect"
) -> ZooKeeperAddress | None:
    """None where there is none. A server without a port has 2181, as ZooKeeper's own clients have it."""
    if text is None or not text.strip():
        return None
    servers_text, slash, path = text.strip().partition("/")
    chroot = "" if not path else slash + path.rstrip("/")
    if chroot and (_CHROOT.fullmatch(chroot) is None or {".", ".."} & set(chroot.split("/"))):
        raise ConfigError(f"{property_name}: {chroot!r} is not a path; write for instance /cluster1")
    servers = []
    for item in servers_text.split(","):
        match = _SERVER.fullmatch(item.strip())
        if match is None or not 0 < int(match[2] or DEFAULT_PORT) <= 65535:
            raise ConfigError(
                f"{property_name}: {item.strip()!r} is not host:port; write for instance "
                "zk1:2181,zk2:2181/cluster1"
            )
        servers.append((match[1].strip("[]"), int(match[2] or DEFAULT_PORT)))
    return ZooKeeperAddress(tuple(servers), chroot)
