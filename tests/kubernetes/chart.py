"""The chart as Helm renders it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml

HELM: Final = shutil.which("helm")
NO_HELM: Final = "helm is not installed (`poe kubernetes` brings it)"
FOLDER: Final = Path(__file__).parents[2] / "deploy/helm"
EXAMPLES: Final = tuple(sorted(file.stem for file in (FOLDER / "examples").glob("*.yaml")))
KUBERNETES: Final = ("1.28.0", "1.34.4")
"""The oldest that the chart takes, and the one that it is tried on."""

Manifest = dict[str, Any]


class NotRendered(Exception):
    """What Helm said."""


def render(example: str, *settings: str, version: str = KUBERNETES[-1]) -> list[Manifest]:
    """Of the release `orders` in the namespace `data`. Settings are those of --set."""
    command = ["helm", "template", "orders", str(FOLDER / "headrace"), "--namespace", "data"]
    command += ["--kube-version", version, "--values", str(FOLDER / "examples" / f"{example}.yaml")]
    for setting in settings:
        # Helm writes large numbers as 1e+09, so properties have to be texts.
        command += ["--set-string" if setting.startswith("config.") else "--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise NotRendered(done.stderr)
    return [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]


def of_kind(manifests: list[Manifest], kind: str) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def properties(manifests: list[Manifest]) -> dict[str, str]:
    """The file that every broker reads."""
    (config,) = of_kind(manifests, "Secret")
    lines = config["stringData"]["server.properties"].splitlines()
    return dict(line.split("=", 1) for line in lines if line)
