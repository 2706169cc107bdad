"""Hosts as network namespaces: each broker has an address of its own, and nft cuts what a test wants cut.

All hosts hang on one bridge. The namespace of the test itself has the bridge's address: clients and
ZooKeeper are there. Rules live inside the hosts' namespaces, so they go when the hosts go.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.broker_process import Place

#: The host where clients and ZooKeeper are.
OUTSIDE = 0
_NUMBERS = range(64 << 8, 128 << 8)
_turns = itertools.count()


def unavailable() -> str | None:
    """Why there can be no hosts here, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in ("ip", "nft", "setpriv") if shutil.which(tool) is None]
    return f"not installed: {', '.join(missing)}" if missing else None


def _run(*command: str, given: str | None = None) -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=20)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class Network:
    """Hosts 1 to `hosts`, and the cuts between them. Every change takes effect at once."""

    def __init__(self, hosts: int) -> None:
        self.hosts = range(1, hosts + 1)
        self.number = 0
        self._one_way: dict[tuple[int, int], None] = {}
        self._silent: dict[int, None] = {}
        self._without_ports: dict[int, tuple[int, ...]] = {}
        self._loss: dict[int, int] = {}

    @property
    def _name(self) -> str:
        return f"hr{self.number:x}"

    def address(self, host: int) -> str:
        return f"10.{self.number >> 8}.{self.number & 255}.{host + 1}"

    def namespace(self, host: int) -> str:
        return f"{self._name}n{host}"

    def place(self, host: int) -> Place:
        return Place(self.address(host), ("ip", "netns", "exec", self.namespace(host)))

    def places(self) -> list[Place]:
        return [self.place(host) for host in self.hosts]

    def __enter__(self) -> Self:
        remove_left_overs()
        self._take_a_number()
        try:
            for host in self.hosts:
                self._add_host(host)
        except BaseException:
            self.close()
            raise
        return self

    def _take_a_number(self) -> None:
        """The bridge's name is the lock: only one process can make it."""
        for turn in range(len(_NUMBERS)):
            self.number = _NUMBERS[(os.getpid() + (next(_turns) + turn) * 257) % len(_NUMBERS)]
            try:
                _run("ip", "link", "add", "name", f"{self._name}b", "type", "bridge")
                break
            except OSError as error:
                if "exists" not in str(error):
                    raise
        _run("ip", "link", "set", f"{self._name}b", "alias", f"pid {os.getpid()}")
        _run("ip", "address", "add", f"{self.address(OUTSIDE)}/24", "dev", f"{self._name}b")
        _run("ip", "link", "set", f"{self._name}b", "up")

    def _add_host(self, host: int) -> None:
        namespace, outer, inner = self.namespace(host), f"{self._name}v{host}", f"{self._name}e{host}"
        _run("ip", "netns", "add", namespace)
        _run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", namespace)
        _run("ip", "link", "set", outer, "master", f"{self._name}b", "up")
        inside = ("ip", "-n", namespace)
        _run(*inside, "address", "add", f"{self.address(host)}/24", "dev", inner)
        _run(*inside, "link", "set", "lo", "up")
        _run(*inside, "link", "set", inner, "up")

    def close(self) -> None:
        _remove(self._name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Cuts.

    def block(self, source: int, destination: int) -> None:
        """What `source` sends does not arrive at `destination`. The other way stays open."""
        self._one_way[source, destination] = None
        self._apply()

    def cut(self, one: Iterable[int], other: Iterable[int]) -> None:
        """Nothing passes between two groups of hosts, in either direction."""
        others = list(other)
        for left in one:
            for right in others:
                self._one_way[left, right] = self._one_way[right, left] = None
        self._apply()

    def ring(self) -> None:
        """Every host sees only its two neighbours: a majority for each, and no two majorities alike."""
        for left in self.hosts:
            for right in self.hosts:
                if (right - left) % len(self.hosts) not in (0, 1, len(self.hosts) - 1):
                    self._one_way[left, right] = None
        self._apply()

    def bridge(self, middle: int) -> None:
        """Only `middle` sees everybody; the others do not see each other."""
        for left in self.hosts:
            for right in self.hosts:
                if middle not in (left, right) and left != right:
                    self._one_way[left, right] = None
        self._apply()

    def silence(self, host: int) -> None:
        """As if the cable were pulled: no packet in or out, and no reset that would tell of it."""
        self._silent[host] = None
        self._apply()

    def forbid_ports(self, host: int, ports: Iterable[int]) -> None:
        """`host` reaches none of these ports, wherever they are; all else goes on."""
        self._without_ports[host] = tuple(ports)
        self._apply()

    def lose(self, host: int, percent: int) -> None:
        """So many of the packets that arrive at `host` are dropped, by chance."""
        self._loss[host] = percent
        self._apply()

    def heal(self) -> None:
        for state in (self._one_way, self._silent, self._without_ports, self._loss):
            state.clear()
        self._apply()

    def _apply(self) -> None:
        for host in self.hosts:
            rules = self._rules(host)
            table = f"table ip faults {{\n{rules}}}\n"
            script = f"add table ip faults\ndelete table ip faults\n{table}"
            _run("ip", "netns", "exec", self.namespace(host), "nft", "-f", "-", given=script)

    def _rules(self, host: int) -> str:
        arriving, leaving = ['iifname "lo" accept'], ['oifname "lo" accept']
        if host in self._silent:
            arriving.append("drop")
            leaving.append("drop")
        if ports := self._without_ports.get(host):
            numbers = "{ " + ", ".join(map(str, ports)) + " }"
            arriving.append(f"tcp sport {numbers} drop")
            leaving.append(f"tcp dport {numbers} drop")
        arriving += [f"ip saddr {self.address(s)} drop" for s, d in self._one_way if d == host]
        # The namespace outside has no rules of its own: what goes there is stopped where it begins.
        leaving += [
            f"ip daddr {self.address(d)} drop" for s, d in self._one_way if s == host and d == OUTSIDE
        ]
        if percent := self._loss.get(host):
            arriving.append(f"numgen random mod 100 < {percent} drop")
        return _chain("input", arriving) + _chain("output", leaving)


def _chain(hook: str, rules: list[str]) -> str:
    body = "".join(f"    {rule}\n" for rule in rules)
    return f"  chain {hook} {{\n    type filter hook {hook} priority 0;\n{body}  }}\n"


def _remove(name: str) -> None:
    # The kernel takes its time to remove what is in a namespace: the ends of the cables go first, by name.
    for cable in Path("/sys/class/net").glob(f"{name}v*"):
        _run("ip", "link", "del", cable.name)
    for namespace in re.findall(rf"^({name}n\d+)", _run("ip", "netns", "list"), re.MULTILINE):
        _run("ip", "netns", "del", namespace)
    if Path(f"/sys/class/net/{name}b").exists():
        _run("ip", "link", "del", f"{name}b")


def remove_left_overs() -> None:
    """Networks of test processes that were killed before they could clean up."""
    for bridge in Path("/sys/class/net").glob("hr*b"):
        found = re.fullmatch(r"pid (\d+)", (bridge / "ifalias").read_text().strip())
        if found and not Path(f"/proc/{found[1]}").exists():
            _remove(bridge.name[:-1])
