"""How much memory there is: the machine's, or that of the container."""

from __future__ import annotations

from pathlib import Path

from headrace.broker.process.system import memory_bytes

GB = 1 << 30


def machine(root: Path, *, groups: str, limits: dict[str, str]) -> int:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal:  {8 * GB // 1024} kB\nMemFree: 5 kB\n")
    (root / "proc/self/cgroup").write_text(groups)
    for path, text in limits.items():
        file = root / "cgroup" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    return memory_bytes(str(root / "proc"), str(root / "cgroup"))


def test_without_a_container(tmp_path: Path) -> None:
    assert machine(tmp_path, groups="0::/\n", limits={}) == 8 * GB


def test_no_limit(tmp_path: Path) -> None:
    assert machine(tmp_path, groups="0::/a\n", limits={"a/memory.max": "max"}) == 8 * GB


def test_the_group_or_the_one_above_it(tmp_path: Path) -> None:
    limits = {"a/memory.max": str(GB), "a/b/memory.max": str(2 * GB)}
    assert machine(tmp_path, groups="0::/a/b\n", limits=limits) == GB


def test_the_first_version_of_control_groups(tmp_path: Path) -> None:
    groups = "9:memory:/docker/x\n8:cpu,cpuacct:/docker/x\n"
    assert machine(tmp_path, groups=groups, limits={"memory/memory.limit_in_bytes": str(GB)}) == GB


def test_this_machine_says_something() -> None:
    assert memory_bytes() > 100 << 20
