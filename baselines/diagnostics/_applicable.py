"""The error of a diagnostic that does not apply."""

from ...core.errors import FarshiftError


class NotApplicable(FarshiftError):
    """A diagnostic that does not apply to a model or its data; the message is the reason."""
