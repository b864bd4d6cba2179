"""Files pinned by content."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class FilePin(BaseModel):
    """One file: what it must be, and where it can be had (`mirrors`, each a table with its `sort`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)
    mirrors: list[dict[str, Any]] = []
