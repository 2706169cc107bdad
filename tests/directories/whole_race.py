"""`headrace tier check` as an operator runs it, on the object store of the tests: 32 writers, five rounds."""

from __future__ import annotations

import subprocess

from tests.broker_process import HEADRACE
from tests.cluster.tiered_store import ENVIRONMENT
from tests.directories.object_store import running_object_store


def main() -> int:
    with running_object_store() as store:
        where = ("--endpoint", store.settings["s3.endpoint"], "--region", store.settings["s3.region"])
        command = [str(HEADRACE), "tier", "check", store.location(), *where]
        return subprocess.run(command, env=ENVIRONMENT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
