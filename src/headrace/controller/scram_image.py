"""SCRAM credentials, as the committed records say them: by user, then by mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from headrace.security.scram_credential import ScramCredential, ScramMechanism

MECHANISMS: Final[Mapping[int, ScramMechanism]] = {each.wire_type: each for each in ScramMechanism}
"""By their numbers in requests and stored records."""
_NONE: Final[Mapping[ScramMechanism, ScramCredential]] = MappingProxyType({})


class ScramTable:
    __slots__ = ("_users", "epoch")

    def __init__(self) -> None:
        self._users: dict[str, dict[ScramMechanism, ScramCredential]] = {}
        self.epoch = 0
        """Moves with every change."""

    # --- reading ------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of users."""
        return len(self._users)

    def users(self) -> list[str]:
        return list(self._users)

    def of(self, user: str) -> Mapping[ScramMechanism, ScramCredential]:
        return self._users.get(user, _NONE)

    def find(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return self._users.get(user, _NONE).get(mechanism)

    # --- changes: only replay calls these -----------------------------------------------------------------

    def put(self, user: str, mechanism: ScramMechanism, credential: ScramCredential) -> None:
        self._users.setdefault(user, {})[mechanism] = credential
        self.epoch += 1

    def remove(self, user: str, mechanism: ScramMechanism) -> None:
        """The credential exists."""
        credentials = self._users[user]
        del credentials[mechanism]
        if not credentials:
            del self._users[user]
        self.epoch += 1
