"""Links in the file of `headrace apply`, between two real brokers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.client import links
from headrace.testing.cluster import Cluster
from tests.integration.real_client import eventually
from tests.ports import own_port
from tests.unit.cli.serving import Run, runner


@pytest.fixture(scope="module")
def source() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def target() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def there(source: Cluster) -> Run:
    return runner(source.bootstrap)


@pytest.fixture
def run(target: Cluster) -> Run:
    return runner(target.bootstrap)


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    def write(*lines: str) -> str:
        (tmp_path / "cluster.yaml").write_text("\n".join(lines) + "\n")
        return str(tmp_path / "cluster.yaml")

    return write


def described(run: Run, name: str) -> Any:
    return json.loads(run("link", "describe", name, "--json").stdout)


def names(run: Run) -> set[str]:
    return {each["name"] for each in json.loads(run("topic", "list", "--json").stdout)}


def test_a_file_makes_a_link_and_its_export_makes_the_same_elsewhere(
    source: Cluster, there: Run, run: Run, written: Callable[..., str], tmp_path: Path
) -> None:
    there("topic", "create", "made", "-p", "3", "-c", "retention.ms=7000", "-c", "preallocate=true")
    there("produce", "made", stdin="1\n2\n")
    file = written(
        "owns: {topics: [made*], links: [made*]}",
        "topics: {}",
        "links:",
        f"  made.eu: {{source: '{source.bootstrap}', topic: made, groups: [b*, a],",
        "            settings: {retention.ms: 9000}}",
    )
    asked = run("apply", "-f", file, "--check", code=2)
    assert asked.stdout.splitlines() == [
        "+ link made.eu",
        f"    source: {source.bootstrap}",
        "    topic: made",
        "    groups: a,b*",
        "    partitions: (the source's)",
        "    replicas: (the broker's)",
        "    retention.ms: 9000",
        "    further settings: (the source's)",
    ]
    run("apply", "-f", file, "--yes")
    assert "nothing to change" in run("apply", "-f", file, "--check").stderr
    assert "nothing to change" in run("apply", "-f", file, "--yes").stderr
    eventually(lambda: sum(each["end"] for each in described(run, "made.eu")["partitions"]) == 2)

    exported = run("export", "--topics", "made*", "--links", "made*").stdout
    assert "preallocate: true" in exported
    assert "retention.ms: 9000" in exported
    (tmp_path / "copy.yaml").write_text(exported)
    run("apply", "-f", str(tmp_path / "copy.yaml"), "--check")
    with Cluster() as third:
        elsewhere = runner(third.bootstrap)
        elsewhere("apply", "-f", str(tmp_path / "copy.yaml"), "--yes")
        assert elsewhere("export", "--topics", "made*", "--links", "made*").stdout == exported


def test_a_link_follows_its_file(source: Cluster, there: Run, run: Run, written: Callable[..., str]) -> None:
    there("topic", "create", "follow", "-c", "retention.ms=7000")
    begin = "owns: {links: [follow]}\nlinks:\n  follow:"
    run("apply", "-f", written(f"{begin} {{source: '{source.bootstrap}', groups: [a]}}"), "--yes")
    other = source.bootstrap.replace("127.0.0.1", "localhost")
    assert other != source.bootstrap
    file = written(f"{begin} {{source: '{other}', state: PAUSED, settings: {{preallocate: true}}}}")
    assert run("apply", "-f", file, "--check", code=2).stdout.splitlines() == [
        "~ link follow",
        f"    source: {source.bootstrap} -> {other}",
        "    state: ACTIVE -> PAUSED",
        "    groups: a -> (default)",
        "~ topic follow",
        "    preallocate: (default) -> true",
    ]
    run("apply", "-f", file, "--yes")
    run("apply", "-f", file, "--check")
    after = described(run, "follow")
    assert (after["state"], after["values"].get(links.GROUPS)) == ("PAUSED", None)
    unsaid = written(f"{begin} {{source: '{other}'}}")
    run("apply", "-f", unsaid, "--check")
    resumed = written(f"{begin} {{source: '{other}', state: ACTIVE}}")
    run("apply", "-f", resumed, "--yes")
    assert described(run, "follow")["state"] == "ACTIVE"
    exported = run("export", "--links", "follow").stdout
    assert "retention.ms: 7000" in exported, "what the file does not name is the source's"


def test_a_link_begun_and_not_ended_is_ended(
    source: Cluster, there: Run, run: Run, target: Cluster, written: Callable[..., str]
) -> None:
    """The command died between the link and its topic. The file has changed since."""
    import asyncio

    from headrace.client.cluster import Cluster as Client

    there("topic", "create", "begun")

    async def begin() -> None:
        async with Client(source.bootstrap) as other, Client(target.bootstrap) as client:
            found = await links.look_at_source(other, "begun")
            values = links.values_for(found, source.bootstrap, "old.properties", ["old"])
            await links.alter(client, "begun", values)

    asyncio.run(begin())
    assert "begun" not in names(run)
    exported = run("export", "--links", "begun").stdout
    assert "links: {}" in exported
    file = written("owns: {links: [begun]}", f"links: {{begun: {{source: '{source.bootstrap}'}}}}")
    assert "+ link begun" in run("apply", "-f", file, "--check", code=2).stdout
    run("apply", "-f", file, "--yes")
    run("apply", "-f", file, "--check")
    assert "begun" in names(run)


def test_what_cannot_be_done_is_said_before_anything_is_changed(
    source: Cluster, target: Cluster, there: Run, run: Run, written: Callable[..., str]
) -> None:
    for name in ("no.a", "no.b", "no.c"):
        there("topic", "create", name)
    run("topic", "create", "no.plain")
    run("link", "create", "no.a", "--source", source.bootstrap)
    at = f"source: '{source.bootstrap}'"
    file = written(
        "owns: {links: ['no.*', 'fresh'], topics: ['no.*']}",
        "topics: {no.plain: }",
        "links:",
        f"  no.a: {{{at}, topic: no.b}}",
    )
    assert "it copies no.a and cannot copy no.b" in run("apply", "-f", file, "--yes", code=1).stderr
    plain = written("owns: {links: ['no.*']}", "links:", f"  no.a: {{{at}}}", f"  no.plain: {{{at}}}")
    assert "it is no copy" in run("apply", "-f", plain, "--yes", code=1).stderr
    copy = written("owns: {links: ['no.*'], topics: ['no.*']}", "links: {}", "topics: {no.a: }")
    assert "topic no.a is a copy" in run("apply", "-f", copy, "--yes", code=1).stderr
    refused = run(
        "apply",
        "-f",
        written(
            "owns: {links: ['no.*']}",
            "links:",
            f"  no.a: {{{at}}}",
            f"  no.b: {{{at}, replicas: 2}}",
            f"  no.c: {{{at}, settings: {{retention.ms: soon}}}}",
            f"  no.d: {{{at}}}",
            f"  no.e: {{source: '{target.bootstrap}', topic: no.plain}}",
            f"  no.f: {{{at}, topic: no.a}}",
            f"  no.g: {{{at}, source-config: missing.properties}}",
            f"  no.h: {{source: '127.0.0.1:{own_port()}'}}",
        ),
        "--yes",
        code=1,
    ).stderr
    for said in (
        "link no.b: 2 replicas need as many brokers; 1 live",
        "retention.ms=soon",
        f"link no.d: its source {source.bootstrap}: topic no.d at the source does not exist",
        "is this cluster itself",
        "that topic is linked already, as 'no.a'",
        "missing.properties: No such file",
        "where it wants TLS or SASL, `source-config: PATH` says how",
    ):
        assert said in refused
    assert {each for each in names(run) if each.startswith("no.")} == {"no.a", "no.plain"}


def test_a_copy_is_not_deleted_by_one_word(
    source: Cluster, there: Run, run: Run, written: Callable[..., str]
) -> None:
    for name in ("gone.empty", "gone.full"):
        there("topic", "create", name)
        run("link", "create", name, "--source", source.bootstrap)
    there("produce", "gone.full", stdin="1\n2\n")
    eventually(lambda: described(run, "gone.full")["partitions"][0]["end"] == 2)
    without = written("owns: {links: [gone.*]}", "links: {}")
    assert "2 things that the file owns" in run("apply", "-f", without, "--yes").stderr
    both = written("owns: {links: [gone.*]}", "prune: true", "links: {}")
    run("apply", "-f", both, "--yes")
    assert {"gone.empty", "gone.full"} <= names(run)
    refused = run("apply", "-f", both, "--yes", "--prune", code=1)
    assert "topic gone.full has 2 records: `--yes-delete gone.full` deletes it" in refused.stderr
    assert "    it has 2 records" in refused.stdout.splitlines()
    run("apply", "-f", both, "--yes", "--prune", "--yes-delete", "gone.full")
    assert not {"gone.empty", "gone.full"} & names(run)
    assert "gone." not in run("link", "list").stdout


def test_what_is_promoted_is_a_topic(
    source: Cluster, there: Run, run: Run, written: Callable[..., str]
) -> None:
    there("topic", "create", "risen", "-c", "retention.ms=7000")
    run("link", "create", "risen", "--source", source.bootstrap)
    link = written(
        "owns: {links: [risen], topics: [risen]}", f"links: {{risen: {{source: '{source.bootstrap}'}}}}"
    )
    run("apply", "-f", link, "--check")
    run("link", "promote", "risen", "--yes")
    assert "link risen: it is promoted" in run("apply", "-f", link, "--yes", code=1).stderr
    exported = run("export", "--links", "risen", "--topics", "risen").stdout
    assert "links: {}" in exported
    file = written(exported.replace("partitions: 1", "partitions: 2"))
    run("apply", "-f", file, "--yes")
    run("apply", "-f", file, "--check")
