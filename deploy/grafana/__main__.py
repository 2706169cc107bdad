"""`python -m deploy.grafana` writes the dashboards beside itself; `--check` says whether they are current."""

from __future__ import annotations

import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deploy.grafana.broker import broker
from deploy.grafana.clients import clients
from deploy.grafana.cluster import cluster


def dashboards() -> dict[str, str]:
    """File names, each with its text."""
    made = {"cluster": cluster, "broker": broker, "clients": clients}
    encoder = JSONEncoder(sort_keys=True, indent=2)
    return {f"{name}.json": encoder.encode(build().build()) + "\n" for name, build in made.items()}


def main() -> int:
    folder = Path(__file__).parent
    old = []
    for name, text in dashboards().items():
        file = folder / name
        if file.exists() and file.read_text() == text:
            continue
        old.append(name)
        if "--check" not in sys.argv:
            file.write_text(text)
    if old and "--check" in sys.argv:
        sys.stderr.write(f"not what `poe dashboards` would write: {', '.join(old)}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
