"""The files with which a user's programs connect: for Java, for librdkafka and for Spark.

The three say the same. They hold the password, so only their owner may read them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from headrace.client.credentials import LOGIN_MODULES
from headrace.client.errors import ClientFailure
from headrace.client.private_files import READABLE, write_if_changed
from headrace.client.security import ClientSecurity
from headrace.config.secret import Secret

_JAVA: Final = (
    "# Kafka's client properties, for Java, for Kafka's own tools and for headrace --command-config.\n"
)
_LIBRDKAFKA: Final = "# For librdkafka: confluent-kafka for Python, Go and .NET, kcat -F.\n"
_SPARK: Final = (
    "# Options of Spark's source and sink `kafka`. In PySpark:\n"
    "#   lines = [line for line in open(FILE).read().splitlines() if line[:1] != '#']\n"
    "#   spark.readStream.format('kafka').options(**dict(line.split('=', 1) for line in lines))\n"
)


@dataclass(frozen=True, slots=True)
class Access:
    """How one user connects."""

    bootstrap: str
    protocol: str
    """SASL_SSL or SASL_PLAINTEXT."""
    mechanism: str
    username: str
    password: Secret
    trust: Path | None
    """PEM of the authority; None for whom the system trusts."""


class ClientFiles(NamedTuple):
    java: Path
    librdkafka: Path
    spark: Path

    @classmethod
    def beside(cls, java: Path) -> ClientFiles:
        """alice.properties, alice-librdkafka.properties and alice-spark.properties."""
        stem = java.name.removesuffix(".properties")
        return cls(
            java,
            java.with_name(f"{stem}-librdkafka.properties"),
            java.with_name(f"{stem}-spark.properties"),
        )

    def with_authority(self, access: Access) -> Access:
        """The same with a copy of the authority beside the files. The user may not be able to read the one
        that the administrator trusts, and takes all files along."""
        if access.trust is None:
            return access
        copy = self.java.with_name(self.java.name.removesuffix(".properties") + "-ca.pem")
        self.java.parent.mkdir(parents=True, exist_ok=True)
        write_if_changed(copy, access.trust.read_bytes(), READABLE)
        return replace(access, trust=copy.absolute())

    def write(self, access: Access) -> list[Path]:
        """Those that are new or have changed."""
        for text in (access.bootstrap, access.username, access.password.reveal()):
            if "\n" in text or "\r" in text:
                raise ClientFailure("a name or password with a line break cannot stand in a file")
        texts = {
            self.java: _JAVA + _as_java_reads(java_properties(access)),
            self.librdkafka: _LIBRDKAFKA + _as_it_is(librdkafka_properties(access)),
            self.spark: _SPARK + _as_it_is(spark_options(access)),
        }
        self.java.parent.mkdir(parents=True, exist_ok=True)
        return [path for path, text in texts.items() if write_if_changed(path, text.encode())]


def java_properties(access: Access) -> dict[str, str]:
    properties = {
        "bootstrap.servers": access.bootstrap,
        "security.protocol": access.protocol,
        "sasl.mechanism": access.mechanism,
        "sasl.jaas.config": (
            f"{LOGIN_MODULES[access.mechanism]} required"
            f" username={_quoted(access.username)} password={_quoted(access.password.reveal())};"
        ),
    }
    if access.trust is not None:
        properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(access.trust)}
    return properties


def librdkafka_properties(access: Access) -> dict[str, str]:
    properties = {
        "bootstrap.servers": access.bootstrap,
        "security.protocol": access.protocol,
        "sasl.mechanism": access.mechanism,
        "sasl.username": access.username,
        "sasl.password": access.password.reveal(),
    }
    if access.trust is not None:
        properties["ssl.ca.location"] = str(access.trust)
    return properties


def spark_options(access: Access) -> dict[str, str]:
    """Spark hands what begins with `kafka.` to Kafka's Java client."""
    return {f"kafka.{name}": value for name, value in java_properties(access).items()}


def trusted_authority(security: ClientSecurity) -> Path | None:
    """Whom a new user shall trust: the same as the administrator's own client. Raises ClientFailure."""
    if security.tls is None or not security.tls.trust_store.is_there:
        return None
    store = security.tls.trust_store
    if store.location is None or not _is_pem(store.type.upper(), Path(store.location)):
        raise ClientFailure(
            "client files name a PEM file with the authority, and --command-config names none",
            "set ssl.truststore.type=PEM and ssl.truststore.location in that file",
        )
    return Path(store.location).absolute()


def _is_pem(store_type: str, path: Path) -> bool:
    """JKS is what a file means that names no type. Commands read PEM then too."""
    if store_type != "JKS":
        return store_type == "PEM"
    try:
        return b"-----BEGIN " in path.read_bytes()
    except OSError:
        return False


def _quoted(text: str) -> str:
    """As a string of a JAAS configuration."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _as_java_reads(properties: dict[str, str]) -> str:
    """Java reads Latin-1, where a backslash begins an escape."""
    lines = []
    for name, value in properties.items():
        escaped = value.replace("\\", "\\\\").encode("utf-16-be")
        units = (int.from_bytes(escaped[at : at + 2], "big") for at in range(0, len(escaped), 2))
        text = "".join(chr(unit) if 0x20 <= unit < 0x7F else f"\\u{unit:04x}" for unit in units)
        lines.append(f"{name}={text}\n")
    return "".join(lines)


def _as_it_is(properties: dict[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())
