"""Protection of a local cluster: an authority and certificates in its directory, one administrator, ACLs.

    directory/certs/              the authority, a certificate for each broker, for `admin`, for ZooKeeper
    directory/client.properties   how `admin` connects with a password; beside it for librdkafka and Spark

Clients come over SASL_SSL with SCRAM. Brokers, and `admin` where the password is lost, come over SSL with
certificates. Brokers come to ZooKeeper with one certificate for all of them, to which its nodes belong. What
is there is used again: only a certificate that ends soon is made anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from headrace.broker.process.local_cluster import LOOPBACK
from headrace.client import users
from headrace.client.apart import run_apart
from headrace.client.certificates import Authority, show
from headrace.client.client_files import Access, ClientFiles, librdkafka_properties
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.private_files import PRIVATE_DIRECTORY, write_if_changed
from headrace.client.security import ClientSecurity
from headrace.config.properties_file import read_properties
from headrace.config.secret import Secret
from headrace.security.scram_credential import ScramMechanism

ADMIN: Final = "admin"
MECHANISM: Final = ScramMechanism.SHA_512
HOSTS: Final = (LOOPBACK, "localhost")
RENEWED_DAYS: Final = 30
"""A certificate with fewer days left is made anew at the start."""
_ZOOKEEPER: Final = "zookeeper"
_ZOOKEEPER_CLIENT: Final = "zookeeper-client"
_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class ZooKeeperStores(NamedTuple):
    """PEM files."""

    server: Path
    truststore: Path
    client: Path
    """What brokers show."""


class LocalSecurity:
    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.certificates = self.directory / "certs"
        self.admin_file = self.certificates / "admin.properties"
        """With a certificate in place of a password."""
        self.files = ClientFiles(
            self.directory / "client.properties",
            self.directory / "librdkafka.properties",
            self.directory / "spark.properties",
        )

    def prepare(self, broker_ids: Sequence[int], broker_ports: Sequence[int]) -> list[str]:
        """Makes what is missing. Returns the names of the certificates that were made."""
        authority = self._authority()
        wanted = {ADMIN: (), **{f"broker-{number}": HOSTS for number in broker_ids}}
        made = [name for name, hosts in wanted.items() if _issued(authority, name, hosts)]
        text = "".join(f"{name}={value}\n" for name, value in self._admin_properties(broker_ports).items())
        write_if_changed(self.admin_file, text.encode())
        return made

    def prepare_zookeeper(self) -> ZooKeeperStores:
        """Makes what a ZooKeeper on this machine and its clients need."""
        authority = self._authority()
        _issued(authority, _ZOOKEEPER, HOSTS)
        _issued(authority, _ZOOKEEPER_CLIENT, ())
        return ZooKeeperStores(
            self._keystore(_ZOOKEEPER), authority.path.absolute(), self._keystore(_ZOOKEEPER_CLIENT)
        )

    def zookeeper_properties(self) -> dict[str, str]:
        """What the file of every broker says about it."""
        stores = self._stores(_ZOOKEEPER_CLIENT)
        return {
            "zookeeper.ssl.client.enable": "true",
            **{f"zookeeper.{name}": value for name, value in stores.items()},
            "zookeeper.set.acl": "true",
        }

    def _authority(self) -> Authority:
        self.directory.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIRECTORY)
        self.certificates.mkdir(exist_ok=True, mode=PRIVATE_DIRECTORY)
        self.certificates.chmod(PRIVATE_DIRECTORY)
        return Authority.at(self.certificates)

    def properties(
        self, broker_id: int, port: int, broker_port: int, broker_ids: Sequence[int]
    ) -> dict[str, str]:
        """What the file of a broker says about protection. Certificates are asked for on SSL alone."""
        known = [f"User:{ADMIN}", f"User:CN={ADMIN}", *(f"User:CN=broker-{each}" for each in broker_ids)]
        return {
            "listeners": f"SASL_SSL://{LOOPBACK}:{port},SSL://{LOOPBACK}:{broker_port}",
            "inter.broker.listener.name": "SSL",
            **self._stores(f"broker-{broker_id}"),
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": MECHANISM.value,
            "authorizer.class.name": _AUTHORIZER,
            "super.users": ";".join(known),
        }

    def ensure_admin(self, bootstrap: str) -> bool:
        """Creates `admin` if there is none, and writes how to connect to `bootstrap`. False if there is one
        whose password is not here. Blocks; the caller may have an event loop of its own."""
        return run_apart(self._ensure_admin(bootstrap), "headrace-admin")

    def client_config(self) -> dict[str, str]:
        """Of `admin`, for librdkafka."""
        access = self._known_access()
        if access is None:
            raise ClientFailure(f"{self.files.java} is missing", "start the cluster first")
        return librdkafka_properties(access)

    async def _ensure_admin(self, bootstrap: str) -> bool:
        security = ClientSecurity.read(str(self.admin_file))
        known = self._known_access()
        async with Cluster(self._admin_bootstrap(), client_id="headrace-up", security=security) as cluster:
            is_new = await users.find_user(cluster, ADMIN) is None
            if known is None and not is_new:
                return False
            password = users.new_password() if known is None else known.password
            # Before the user: no crash leaves one whose password nobody knows.
            self.files.write(self._access(bootstrap, password))
            if is_new:
                await users.set_password(cluster, ADMIN, MECHANISM, password)
            return True

    def _access(self, bootstrap: str, password: Secret) -> Access:
        trust = self.certificates / "ca.pem"
        return Access(bootstrap, "SASL_SSL", MECHANISM.value, ADMIN, password, trust)

    def _known_access(self) -> Access | None:
        if not self.files.java.exists():
            return None
        credentials = ClientSecurity.read(str(self.files.java)).credentials
        if credentials is None or credentials.username != ADMIN:
            raise ClientFailure(
                f"{self.files.java} is not the file of {ADMIN}", "move it away, and start again"
            )
        return self._access(read_properties(str(self.files.java))["bootstrap.servers"], credentials.password)

    def _admin_bootstrap(self) -> str:
        return read_properties(str(self.admin_file))["bootstrap.servers"]

    def _admin_properties(self, broker_ports: Sequence[int]) -> Mapping[str, str]:
        return {
            "bootstrap.servers": ",".join(f"{LOOPBACK}:{port}" for port in broker_ports),
            "security.protocol": "SSL",
            **self._stores(ADMIN),
        }

    def _keystore(self, name: str) -> Path:
        return self.certificates / f"{name}-keystore.pem"

    def _stores(self, name: str) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._keystore(name)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates / "ca.pem"),
        }


def _issued(authority: Authority, name: str, hosts: Sequence[str]) -> bool:
    path, keystore = (authority.directory / f"{name}{end}.pem" for end in ("", "-keystore"))
    if path.exists() and keystore.exists() and show(path)[0].days_left(datetime.now(UTC)) >= RENEWED_DAYS:
        return False
    authority.issue(name, hosts, renew=True)
    return True
