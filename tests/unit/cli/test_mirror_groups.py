"""`headrace mirror groups --ready`: when a group may be moved."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.spark.mirror import reading
from headrace.spark.mirror.config import MirrorConfig
from headrace.spark.mirror.groups import Carried

_CONFIG = """
[source]
"bootstrap.servers" = "127.0.0.1:1"
[target]
"bootstrap.servers" = "127.0.0.1:2"
[mirror]
name = "m"
[[topics]]
name = "t"
[groups]
patterns = [".*"]
"""


@pytest.mark.parametrize(
    ("names", "code", "said"),
    [
        (["well"], 0, ""),
        (["late"], 1, "1 offsets are not carried yet"),
        (["wel"], 1, "committed at the source by wel: is the name right"),
        (["well", "wel"], 1, "committed at the source by wel: is the name right"),
        ([], 1, "1 offsets are not carried yet"),
    ],
)
def test_ready_is_who_has_all_offsets_there(
    names: list[str], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(_: MirrorConfig) -> list[Carried]:
        return [
            Carried("well", "t", 0, 5, "t", 5, 5, "carried"),
            Carried("late", "t", 0, 5, "t", None, None, "behind"),
        ]

    monkeypatch.setattr(reading, "groups_now", found)
    path = tmp_path / "mirror.toml"
    path.write_text(_CONFIG)
    result = CliRunner().invoke(cli, ["mirror", "groups", *names, "--ready", "--config", str(path)])
    assert result.exit_code == code, result.output
    assert said in result.output
