"""What the registry refuses, with the status and the error code that Confluent's clients know.

The first three digits of a code are the HTTP status. Messages follow Confluent's closely enough for people
who search for them; clients go by the codes.
"""

from __future__ import annotations

from headrace.core.errors import HeadraceError


class RegistryError(HeadraceError):
    """An answer with `status` and {"error_code": code, "message": text}."""

    def __init__(self, status: int, code: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(404, 40401, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> RegistryError:
    return RegistryError(404, 40402, f"Version {version} not found.")


def schema_not_found(which: int | str | None = None) -> RegistryError:
    return RegistryError(404, 40403, "Schema not found" if which is None else f"Schema {which} not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    text = f"Subject '{subject}' was soft deleted. Set permanent=true to delete it permanently"
    return RegistryError(404, 40404, text)


def subject_not_soft_deleted(subject: str) -> RegistryError:
    text = f"Subject '{subject}' was not deleted first before being permanently deleted"
    return RegistryError(404, 40405, text)


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    text = (
        f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to delete it permanently"
    )
    return RegistryError(404, 40406, text)


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    text = f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    return RegistryError(404, 40407, text)


def no_compatibility_of(subject: str) -> RegistryError:
    text = f"Subject '{subject}' does not have subject-level compatibility configured"
    return RegistryError(404, 40408, text)


def no_mode_of(subject: str) -> RegistryError:
    return RegistryError(404, 40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, reasons: list[str]) -> RegistryError:
    text = (
        f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
        f"details: [{', '.join(reasons)}]"
    )
    return RegistryError(409, 40901, text)


def invalid_schema(reason: str) -> RegistryError:
    return RegistryError(422, 42201, f"Invalid schema: {reason}")


def invalid_version(version: object) -> RegistryError:
    text = (
        f"The specified version '{version}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"'
    )
    return RegistryError(422, 42202, text)


def invalid_level(levels: str) -> RegistryError:
    return RegistryError(422, 42203, f"Invalid compatibility level. Valid values are {levels}")


def invalid_mode(modes: str) -> RegistryError:
    return RegistryError(422, 42204, f"Invalid mode. Valid values are {modes}")


def not_permitted(reason: str) -> RegistryError:
    return RegistryError(422, 42205, reason)


def referenced(subject: str, version: int) -> RegistryError:
    text = f"One or more references exist to the schema {{subject={subject},version={version}}}."
    return RegistryError(422, 42206, text)


def id_does_not_match(reason: str) -> RegistryError:
    return RegistryError(422, 42207, reason)


def invalid_subject(subject: str) -> RegistryError:
    return RegistryError(422, 42208, f"The specified subject '{subject}' is not a valid subject.")


def schema_too_large(reason: str) -> RegistryError:
    return RegistryError(422, 42209, f"Schema too large: {reason}")


def bad_request(reason: str) -> RegistryError:
    return RegistryError(400, 400, reason)


def unprocessable(reason: str) -> RegistryError:
    return RegistryError(422, 422, reason)


def store_failed(reason: str) -> RegistryError:
    return RegistryError(500, 50001, reason)


def store_timed_out(reason: str) -> RegistryError:
    return RegistryError(500, 50002, reason)


def forbidden(text: str) -> RegistryError:
    return RegistryError(403, 40301, text)
