"""What REST answers where it refuses: Kafka Connect's statuses, and its words if programs look for them."""

from __future__ import annotations

from headrace.core.errors import HeadraceError


class ConnectError(HeadraceError):
    """Answered as {"error_code": status, "message": text}."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def bad_request(text: str) -> ConnectError:
    return ConnectError(400, text)


def not_found(text: str) -> ConnectError:
    return ConnectError(404, text)


def conflict(text: str) -> ConnectError:
    return ConnectError(409, text)


def failed(text: str) -> ConnectError:
    return ConnectError(500, text)


def no_connector(name: str) -> ConnectError:
    return not_found(f"Connector {name} not found")


def unknown_connector(name: str) -> ConnectError:
    return not_found(f"Unknown connector {name}")


def not_stopped(name: str) -> ConnectError:
    return bad_request(
        "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for "
        f"the specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
    )


def invalid_config(problems: list[str]) -> ConnectError:
    return bad_request(
        f"Connector configuration is invalid and contains the following {len(problems)} error(s):\n"
        + "\n".join(problems)
        + "\nYou can also find the above list of errors at the endpoint "
        "`/connector-plugins/{connectorType}/config/validate`"
    )
