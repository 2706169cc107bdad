"""TLS and SASL for both makes alike: `python -m bench --secure`.

Each broker has a second listener with SASL_SSL. Loads use that one, and so do brokers among themselves. The
plaintext listener is there for whoever asks whether the broker is ready.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench import load_generator, topics

USER, PASSWORD = "bench", "bench-password"
LISTENER = "SASL_SSL"
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    f' username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
)


@dataclass(frozen=True)
class Protection:
    """The certificates of a run."""

    directory: Path

    @classmethod
    def make(cls, directory: Path, headrace: Path) -> Protection:
        """One certificate for all brokers, of an authority of its own; loads trust it from now on."""
        command = [str(headrace), "cert", "create", "broker", "--host", "127.0.0.1", "--dir", str(directory)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        made = cls(directory)
        load_generator.client_properties.update(made.client_properties())
        topics.client_properties.update(made.client_properties())
        return made

    def client_properties(self) -> dict[str, str]:
        """As librdkafka has them."""
        return {
            "security.protocol": LISTENER,
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.directory / "ca.pem"),
        }

    def broker_properties(self) -> dict[str, str]:
        return {
            "inter.broker.listener.name": LISTENER,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.directory / "broker-keystore.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.directory / "ca.pem"),
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": JAAS,
        }


def listeners(port: int, secure_port: int) -> str:
    """With what is for brokers and loads, if they have a port of their own."""
    plaintext = f"PLAINTEXT://127.0.0.1:{port}"
    return f"{plaintext},{LISTENER}://127.0.0.1:{secure_port}" if secure_port else plaintext
