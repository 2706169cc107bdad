"""Where a Postgres is: the settings that its connectors have in common."""

from __future__ import annotations

from typing import Final

from headrace.connect.api import Config
from headrace.connect.postgres.database import Address
from headrace.connect.settings import Importance, Kind, Setting, Settings

_HIGH: Final = Importance.HIGH
DATABASE: Final = Settings(
    Setting("database.hostname", default="localhost", doc="Where Postgres is.", importance=_HIGH),
    Setting("database.port", Kind.INT, 5432, "Its port.", least=1, most=65535),
    Setting("database.user", doc="Who logs in.", importance=_HIGH),
    Setting("database.password", Kind.PASSWORD, "", "Its password.", importance=_HIGH),
    Setting("database.dbname", doc="The database.", importance=_HIGH),
    Setting("database.sslmode", default="prefer", doc="As libpq has it: disable, prefer, verify-full ..."),
    Setting("database.sslrootcert", default="", doc="A file with the authority's certificate."),
)


def address_of(config: Config) -> Address:
    further = {"sslmode": config["database.sslmode"]}
    if config.get("database.sslrootcert"):
        further["sslrootcert"] = config["database.sslrootcert"]
    return Address(
        config["database.hostname"],
        config["database.port"],
        config["database.user"],
        config["database.password"],
        config["database.dbname"],
        further,
    )
