"""What is asked for about security, and cannot be: the peer's fault, all of it."""

from __future__ import annotations

from headrace.core.errors import ClientError


class SecurityDisabled(ClientError):
    """What is asked for needs an authorizer, and none is configured."""


class UnsupportedSaslMechanism(ClientError):
    pass


class ResourceNotFound(ClientError):
    pass


class DuplicateResource(ClientError):
    """A request names the same thing twice, and each mention would mean something else."""


class InvalidPrincipalType(ClientError):
    pass


class DelegationTokensDisabled(ClientError):
    """No key for delegation tokens is configured."""


class DelegationTokenNotFound(ClientError):
    pass


class DelegationTokenOwnerMismatch(ClientError):
    """Only the owner of a token and its renewers may change it."""


class DelegationTokenNotAllowed(ClientError):
    """This connection may not ask for delegation tokens: nobody has authenticated, or a token has."""


class DelegationTokenExpired(ClientError):
    pass
