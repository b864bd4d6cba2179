"""What a diagnostic raises where it does not fit."""

from __future__ import annotations

from ...core.errors import FarshiftError


class NotApplicable(FarshiftError):
    """A diagnostic that does not fit what it is to be taken of; the message is the reason."""
