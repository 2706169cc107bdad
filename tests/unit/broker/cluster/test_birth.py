"""A cluster is born with its first users, in one batch, once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner, Result

from headrace.broker.cluster.birth import ClusterExists, begin_cluster
from headrace.cli.main import cli
from headrace.controller.codec import decode_metadata_batch
from headrace.controller.security_operations import ScramUpsertion
from headrace.coordination.local import LocalCoordination
from headrace.core.errors import ConfigError
from headrace.core.ids import BrokerId, ControllerEpoch
from headrace.core.ports_coordination import Coordination
from headrace.protocol.stored.feature_level_record import FeatureLevelRecord
from headrace.protocol.stored.user_scram_credential_record import UserScramCredentialRecord
from headrace.security.scram_credential import ScramMechanism, salted_password
from tests.unit.coordination.worlds import LocalWorld, SimulatedWorld, World

CANARY = "canary-password-1d0e"
SALT = bytes(16)


def user(
    name: str, mechanism: ScramMechanism = ScramMechanism.SHA_512, iterations: int = 4096
) -> ScramUpsertion:
    salted = salted_password(mechanism, CANARY, SALT, 4096)
    return ScramUpsertion(name, mechanism.wire_type, iterations, SALT, salted)


async def begin(coordination: Coordination, *users: ScramUpsertion, cluster_id: str = "c") -> str:
    return await begin_cluster(
        coordination, users, cluster_id=cluster_id, broker_id=BrokerId(7), now_ms=1_000
    )


@pytest.fixture(params=["local", "simulated"])
async def world(request: pytest.FixtureRequest) -> World:
    return LocalWorld() if request.param == "local" else SimulatedWorld()


async def test_the_first_batch_holds_the_level_and_the_users(world: World) -> None:
    coordination = await world.open()
    both = (user("admin"), user("admin", ScramMechanism.SHA_256))
    assert await begin(coordination, *both) == "c"
    (committed,) = await coordination.read(0)
    records = list(decode_metadata_batch(committed.batch))
    assert isinstance(records[0], FeatureLevelRecord)
    users = [each for each in records if isinstance(each, UserScramCredentialRecord)]
    assert [(each.name, each.mechanism) for each in users] == [("admin", 2), ("admin", 1)]
    assert CANARY.encode() not in committed.batch


async def test_it_begins_once(world: World) -> None:
    coordination = await world.open()
    await begin(coordination, user("admin"))
    with pytest.raises(ClusterExists, match=r"cluster c has begun already.*headrace user create"):
        await begin(coordination, user("eve"), cluster_id="other")
    assert len(await coordination.read(0)) == 1


async def test_one_that_was_cut_off_is_begun_again(world: World) -> None:
    coordination = await world.open()
    await coordination.claim_cluster_id("first", directories_empty=True)
    assert await begin(coordination, user("admin"), cluster_id="second") == "first"
    assert await coordination.end() > 0


@pytest.mark.parametrize("wrong", [user(""), user("admin", iterations=1), user("x" * 70_000)])
async def test_a_user_who_cannot_be_leaves_nothing_behind(world: World, wrong: ScramUpsertion) -> None:
    coordination = await world.open()
    with pytest.raises(ConfigError, match="user "):
        await begin(coordination, user("admin"), wrong)
    assert await coordination.end() == 0
    assert await begin(coordination, cluster_id="later") == "later"


def run(config: Path, *words: str, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(cli, ("cluster", "init", "--config", str(config), *words), input=stdin)
    assert CANARY not in result.output
    return result


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "server.properties"
    file.write_text(f"broker.id=1\nlog.dirs={tmp_path / 'a'},{tmp_path / 'b'}\n")
    return file


def test_a_password_is_asked_for(config: Path) -> None:
    asked = run(config, "--add-scram", "SCRAM-SHA-512=[name=admin]", stdin=f"{CANARY}\n{CANARY}\n")
    assert asked.exit_code == 0, asked.output
    assert "begins with admin" in asked.stdout
    again = run(config)
    assert again.exit_code == 1
    assert "has begun already" in again.stderr


def test_passwords_come_from_a_file_a_line_for_each(config: Path, tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    file.write_text(f"{CANARY}\n")
    words = ("--add-scram", "SCRAM-SHA-512=[name=a]", "--add-scram", "SCRAM-SHA-512=[name=b]")
    short = run(config, *words, "--password-file", str(file))
    assert short.exit_code == 1
    assert "no password for b" in short.stderr
    assert not (tmp_path / "a").exists(), "nothing has begun"
    file.write_text(f"{CANARY}\nanother\n")
    assert run(config, *words, "--password-file", str(file)).exit_code == 0


def test_a_password_on_the_command_line_is_warned_of(config: Path) -> None:
    told = run(config, "--add-scram", f"SCRAM-SHA-512=[name=admin,password={CANARY}]")
    assert told.exit_code == 0
    assert "other users of this machine can see" in told.stderr


def test_nothing_readable_is_left_by_it(config: Path, tmp_path: Path) -> None:
    assert (
        run(config, "--add-scram", "SCRAM-SHA-512=[name=x]", "--password-stdin", stdin=CANARY).exit_code == 0
    )
    files = [path for folder in ("a", "b") for path in (tmp_path / folder).rglob("*") if path.is_file()]
    assert files
    assert not any(CANARY.encode() in path.read_bytes() for path in files)


def test_data_of_another_cluster_is_not_touched(config: Path, tmp_path: Path) -> None:
    (tmp_path / "a" / "orders-0").mkdir(parents=True)
    refused = run(config)
    assert refused.exit_code == 1
    assert "partitions already" in refused.stderr, refused.output
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["orders-0"]


def test_a_beginning_that_was_cut_off_is_begun_again(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--add-scram", "SCRAM-SHA-512=[name=x]", "--password-stdin")

    async def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LocalCoordination, "append", killed)
        assert run(config, *words, stdin=CANARY).exit_code != 0
    assert run(config, *words, stdin=CANARY).exit_code == 0


async def test_a_broker_that_is_faster_wins(world: World) -> None:
    coordination = await world.open()
    rival = await world.open()

    class Late:
        """Another becomes controller between the two steps."""

        def __getattr__(self, name: str) -> object:
            return getattr(coordination, name)

        async def append(self, sequence: int, data: bytes, epoch: ControllerEpoch) -> None:
            await rival.claim_controller(BrokerId(1))
            await coordination.append(sequence, data, epoch)

    with pytest.raises(ClusterExists, match="has begun already"):
        await begin(cast(Coordination, Late()), user("admin"))
    assert await coordination.end() == 0


def test_a_coordination_that_is_there_is_asked_no_more_than_needed() -> None:
    """Nobody else is deposed: a cluster that has begun keeps its controller."""

    async def check() -> None:
        coordination = await LocalWorld().open()
        await begin(coordination, user("admin"))
        before = await coordination.latest_epoch()
        with pytest.raises(ClusterExists):
            await begin(coordination)
        assert await coordination.latest_epoch() == before

    asyncio.run(check())
