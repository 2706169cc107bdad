"""Brokers that speak SASL_SSL with each other, while clients stay with plaintext.

With HEADRACE_SECURED_LINKS=1 every cluster of real processes has it: the tests of faults and chaos run as
they are, and all that brokers say to each other is encrypted and authenticated.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.certificates import Authority
from tests.ports import own_port

PROTOCOL = "SASL_SSL"
SECRET = "of-the-brokers"
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    f' username="broker" password="{SECRET}" user_broker="{SECRET}";'
)


class SecuredLinks:
    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._authority = Authority(directory)

    @classmethod
    def if_wanted(cls, directory: Path) -> SecuredLinks | None:
        return cls(directory) if os.environ.get("HEADRACE_SECURED_LINKS") == "1" else None

    def protect(self, broker: BrokerProcess) -> None:
        """Before its first start: a listener for brokers, and a certificate for the broker's address."""
        own_host = broker.place.address != "127.0.0.1"
        broker.secured_ports[PROTOCOL] = 9093 if own_host else own_port()
        identity = self._authority.issue(f"broker-{broker.broker_id}", broker.place.address)
        broker.properties |= {
            "inter.broker.listener.name": PROTOCOL,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(identity),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._authority.trust_store),
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": JAAS,
        }
