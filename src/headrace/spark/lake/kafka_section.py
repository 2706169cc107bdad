"""How brokers are reached, said here or in a client file: [kafka] of lake.toml and table.toml, [source] and
[target] of mirror.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from headrace.core.errors import ConfigError
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake.fields import Section, Wrong

COMMAND_CONFIG: Final = "command_config"
"""Named as the option of the commands. Passwords then stand in a file that only its owner may read."""
_LOCATIONS: Final = ("ssl.truststore.location", "ssl.keystore.location")


def kafka_of(document: dict[str, object], directory: Path, section: str = "kafka") -> KafkaProperties:
    """What stands in the section comes before what the file says."""
    written = Section(document, section).texts()
    file = written.pop(COMMAND_CONFIG, None)
    for name in _LOCATIONS:
        if written.get(name):
            written[name] = str(directory / written[name])
    try:
        given = {} if file is None else dict(KafkaProperties.read(directory / file))
        found = KafkaProperties({**given, **KafkaProperties(written)})
    except ConfigError as error:
        raise Wrong((section,), str(error)) from None
    if not found.bootstrap:
        raise Wrong(
            (section,),
            f'the brokers are missing; write "bootstrap.servers" = "host:9092" below [{section}]',
        )
    return found
