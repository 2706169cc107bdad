"""The Python blocks of a page: one interpreter that they share, as in a notebook, or pytest for tests."""

from __future__ import annotations

import ast
import json
import select
import subprocess
import sys
from typing import Final

from tests.documents.page_shell import SECONDS, PageShell

_DRIVER: Final = """
import contextlib, io, json, sys, traceback
names = {"__name__": "__main__"}
for line in sys.stdin:
    printed, code, failed = io.StringIO(), json.loads(line), ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(code, "block", "exec"), names)
        except BaseException:
            failed = traceback.format_exc()
    print(json.dumps([printed.getvalue(), failed]), flush=True)
"""
_NOTHING_COLLECTED: Final = 5


class PagePython:
    def __init__(self, shell: PageShell) -> None:
        self._shell = shell
        self._process: subprocess.Popen[str] | None = None
        self._imports: list[str] = []
        self._tests = 0

    def run(self, code: str) -> str:
        """What went wrong, or nothing."""
        code = self._shell.localised(code)
        tree = ast.parse(code)
        if "def test_" in code or "@pytest.fixture" in code:
            failed = self._pytest(code)
        else:
            failed = self._exec(code)
        found = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        self._imports += [ast.unparse(node) for node in found]
        return failed

    def _pytest(self, code: str) -> str:
        """A file of tests that begins with what the page has imported so far, as a reader's would."""
        self._tests += 1
        path = self._shell.directory / f"test_block_{self._tests}.py"
        path.write_text("\n".join([*self._imports, code]))
        options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(self._shell.directory), "-c", "/dev/null"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, str(path)],
            env=self._shell.environment,
            cwd=self._shell.directory,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        fine = (0,) if "def test_" in code else (0, _NOTHING_COLLECTED)
        return "" if done.returncode in fine else done.stdout + done.stderr

    def _exec(self, code: str) -> str:
        if self._process is None:
            self._process = subprocess.Popen(
                ["python", "-c", _DRIVER],
                env=self._shell.exported(),
                cwd=self._shell.directory,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(code) + "\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], SECONDS)[0]:
            self._process.kill()
        answer = self._process.stdout.readline()
        if not answer:
            return f"Python ended with {self._process.wait()}"
        printed, failed = json.loads(answer)
        return f"{printed}\n{failed}" if failed else ""

    def close(self) -> None:
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
