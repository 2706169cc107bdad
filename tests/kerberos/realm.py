"""A realm of Kerberos of the test's own: Debian's KDC on a loopback port, with its files in one directory."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.ports import own_port

NAME = "HEADRACE.TEST"
SECONDS = 60
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
"""Where the KDC's commands are, and not everybody looks."""

_KDC_CONF = """\
[kdcdefaults]
    kdc_listen = 127.0.0.1:{port}
    kdc_tcp_listen = 127.0.0.1:{port}
[realms]
    {name} = {{
        database_name = {directory}/principal
        key_stash_file = {directory}/stash
        acl_file = {directory}/kadm5.acl
        max_life = 10h
        supported_enctypes = aes256-cts-hmac-sha1-96:normal
    }}
[logging]
    kdc = FILE:{directory}/kdc.log
    admin_server = FILE:{directory}/kadmin.log
"""
_KRB5_CONF = """\
[libdefaults]
    default_realm = {name}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    dns_canonicalize_hostname = false
    rdns = false
    udp_preference_limit = 1
[realms]
    {name} = {{
        kdc = 127.0.0.1:{port}
    }}
[domain_realm]
    localhost = {name}
"""


def missing() -> str | None:
    """Why there can be no realm here."""
    commands = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
    absent = [each for each in commands if shutil.which(each, path=_PATH) is None]
    if absent:
        return f"no {', '.join(absent)}: apt-get install krb5-kdc krb5-admin-server krb5-user"
    return None


class Realm:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = own_port()
        self._process: subprocess.Popen[bytes] | None = None
        values = {"name": NAME, "port": self.port, "directory": directory}
        (directory / "kdc.conf").write_text(_KDC_CONF.format(**values))
        self.krb5_conf.write_text(_KRB5_CONF.format(**values))

    @property
    def krb5_conf(self) -> Path:
        return self.directory / "krb5.conf"

    @property
    def environment(self) -> Mapping[str, str]:
        """For all who speak Kerberos by MIT's library."""
        return {
            "KRB5_CONFIG": str(self.krb5_conf),
            "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.directory}/tickets",
            "KRB5RCACHENAME": f"file2:{self.directory}/replay-cache",
        }

    def add(self, principal: str) -> Path:
        """A keytab with its key, which nobody else knows."""
        self._admin(f"addprinc -randkey {principal}")
        return self.export(principal)

    def change_key(self, principal: str) -> None:
        self._admin(f"cpw -randkey {principal}")

    def export(self, principal: str, into: Path | None = None) -> Path:
        """Into the same keytab as before, or a given one, beside what is there."""
        keytab = into or self.directory / f"{principal.replace('/', '-')}.keytab"
        self._admin(f"ktadd -norandkey -k {keytab} {principal}")
        return keytab

    def _admin(self, query: str) -> None:
        self._run("kadmin.local", "-r", NAME, "-q", query)

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL, env=self._env
        )
        # kadmin.local ends with 0 also where its query has failed.
        assert done.returncode == 0, done.stdout + done.stderr
        assert "while" not in done.stderr, done.stderr

    @property
    def _env(self) -> dict[str, str]:
        return {**os.environ, "PATH": _PATH, **self.environment}

    def __enter__(self) -> Self:
        self._run("kdb5_util", "create", "-s", "-r", NAME, "-P", secrets.token_hex(16))
        with (self.directory / "kdc.out").open("ab") as output:
            self._process = subprocess.Popen(
                ["krb5kdc", "-n", "-r", NAME, "-P", str(self.directory / "kdc.pid")],
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                env=self._env,
            )
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.02)
        self.stop()
        raise RuntimeError(f"the KDC did not start: {(self.directory / 'kdc.out').read_text()}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(SECONDS)
            self._process = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
