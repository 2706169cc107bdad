from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    type: str
    name: str


ANONYMOUS = Principal("User", "ANONYMOUS")
