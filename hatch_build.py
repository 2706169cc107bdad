"""Compiles the modules on the way of a record with mypyc, if the builder of a wheel asks for it.

    HEADRACE_COMPILE=1 uv build --wheel

The compiled modules are the same source and behave the same; a small request takes a third less. Without
the variable, and always in an editable install, the wheel is plain Python. It holds the sources in both
cases, so that a traceback shows its lines. A build that was asked to compile and cannot fails: a plain wheel
in its place would be noticed by nobody. HEADRACE_OPTIMISE=0 leaves the C compiler's optimisation out, for
tests that want the wheel soon. HEADRACE_SBOM names a bill of materials to be put into the wheel.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILED = (
    "broker/coordinators/hosted_shard",
    "broker/coordinators/markers",
    "broker/coordinators/shard_terms",
    "broker/coordinators/writer",
    "broker/requests/dispatcher",
    "broker/coordinators/timers",
    "broker/fetch/fetching",
    "broker/fetch/read_result",
    "broker/fetch/reading",
    "broker/fetch/sessions",
    "broker/fetch/delayed_fetch",
    "broker/fetch/watched_partition",
    "broker/handlers/add_partitions_to_txn",
    "broker/handlers/end_txn",
    "broker/handlers/fetch",
    "broker/handlers/offset_commit",
    "broker/handlers/produce",
    "broker/produce/delayed_produce",
    "broker/produce/early_batches",
    "broker/produce/produce_purgatory",
    "broker/replicas/partitions",
    "broker/produce/appending",
    "broker/produce/refused_batches",
    "broker/replicas/fetch_session",
    "broker/replicas/fetch_wire",
    "broker/replicas/fetcher",
    "broker/replicas/backoff",
    "broker/replicas/group_commit",
    "broker/requests/duplicates",
    "broker/requests/long_requests",
    "broker/requests/request_parts",
    "broker/requests/request_reading",
    "broker/transactions/adding_partitions",
    "broker/transactions/verification_requests",
    "broker/transactions/pending_markers",
    "broker/transactions/patient_requests",
    "broker/transactions/transaction_terms",
    "broker/produce/unverified_produce",
    "broker/transactions/verification",
    "coordinators/codec",
    "coordinators/offset_bytes",
    "coordinators/partitioning",
    "core/completion",
    "core/timers",
    "coordinators/transaction_bytes",
    "groups/group_table",
    "groups/offsets/commits",
    "groups/offsets/offsets",
    "groups/offsets/pending",
    "groups/offsets/stored_offset",
    "groups/offsets/table",
    "log/aborted",
    "log/durable_log",
    "log/index_file",
    "log/index_loading",
    "log/log_folder",
    "log/log_reads",
    "log/offset_index",
    "log/partition_log",
    "log/producer_entry",
    "log/producer_replay",
    "log/producer_state",
    "log/producer_verification",
    "log/read_state",
    "log/resident_reads",
    "log/segment",
    "log/segment_chain",
    "log/segment_times",
    "log/time_index",
    "log/validation",
    "metrics/histogram",
    "metrics/registry",
    "network/response",
    "network/buffers",
    "network/connection",
    "network/direct_link",
    "network/event_loop",
    "network/listener",
    "network/outbox",
    "network/page_cache",
    "network/tls",
    "network/tls_connection",
    "network/tls_link",
    "protocol/batch",
    "protocol/batch_inside",
    "protocol/control_records",
    "protocol/fetch_codec",
    "protocol/headers",
    "protocol/offset_commit_codec",
    "protocol/produce_codec",
    "protocol/reader",
    "protocol/record_spans",
    "protocol/records",
    "protocol/topic_names",
    "protocol/writer",
    "replication/assignment",
    "replication/copying",
    "replication/following",
    "replication/high_watermark",
    "replication/leading",
    "replication/partition",
    "replication/progress",
    "replication/replica",
    "replication/waiting",
    "transactions/ending",
    "transactions/membership",
    "transactions/records",
    "transactions/shard",
    "transactions/transaction",
)
"""Measured together: a call between two of them is a C call, a call across the border is not.

Not here: what tests or users inherit from (`log/os_disk`), because a compiled class cannot be a base of an
interpreted one; `protocol/replica_fetch_codec`, whose tuple of a memoryview the compiler gets wrong;
`broker/coordinators/coordinator`, `broker/transactions/ends` and `writing`, whose tests give them stand-ins
that a compiled module does not take.
"""

WRITTEN_IN_C = ("arrow/compiled_columns",)
"""Beside a module of the same in Python, which works where this was not compiled."""

COMPILER = ("mypy==2.4.1", "setuptools==84.2.1")


class CompileHook(BuildHookInterface[Any]):
    def dependencies(self) -> list[str]:
        return list(COMPILER) if _is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        bill = os.environ.get("HEADRACE_SBOM")
        if bill:
            build_data["sbom_files"].append(bill)
        if version == "editable" or not _is_wanted():
            return
        compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
        if shutil.which(compiler) is None:
            self.app.abort(f"HEADRACE_COMPILE=1, and there is no C compiler ({compiler})")
        output = Path(tempfile.mkdtemp(prefix="headrace-compile-"))
        atexit.register(shutil.rmtree, output)  # not before: the libraries are packed after this returns
        _compile(Path(self.root) / "src", output)
        missing = [
            module
            for module in (*COMPILED, *WRITTEN_IN_C)
            if not list(output.glob(f"headrace/{module}.*.so"))
        ]
        if missing:
            self.app.abort(f"HEADRACE_COMPILE=1, and nothing was compiled of {', '.join(missing)}")
        for library in output.rglob("*.so"):
            build_data["force_include"][str(library)] = str(library.relative_to(output))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def _is_wanted() -> bool:
    return os.environ.get("HEADRACE_COMPILE", "") == "1"


def _compile(source: Path, output: Path) -> None:
    """Types are checked elsewhere, with all libraries at hand. Here a missing one may be of any type."""
    from mypyc.build import mypycify
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    before = Path.cwd()
    os.chdir(source)  # the path of a module, from here, is its name
    try:
        options = [
            "--config-file=",
            f"--cache-dir={output / 'cache'}",
            "--namespace-packages",
            "--explicit-package-bases",
            "--ignore-missing-imports",
        ]
        paths = [f"headrace/{module}.py" for module in COMPILED]
        extensions = mypycify(
            options + paths,
            opt_level=os.environ.get("HEADRACE_OPTIMISE", "3"),
            debug_level="0",
            target_dir=str(output / "c"),
            group_name="headrace",
        )
        extensions += [
            Extension(f"headrace.{module.replace('/', '.')}", [f"headrace/{module}.c"])
            for module in WRITTEN_IN_C
        ]
        command = build_ext(Distribution({"name": "headrace", "ext_modules": extensions}))
        command.build_lib = str(output)
        command.build_temp = str(output / "objects")
        command.ensure_finalized()
        command.run()
    finally:
        os.chdir(before)
