"""Files pinned by content."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _below(name: str) -> str:
    """A name, with folders or without, that leads nowhere out of the folder it is put in."""
    if not name.isprintable() or "\\" in name or {"", ".", ".."} & set(name.split("/")):
        raise ValueError(f"{name!r} is no name of a file, or of one in folders below")
    return name


class FilePin(BaseModel):
    """One file: what it must be, and where it can be had (`mirrors`, each a table with its `sort`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, AfterValidator(_below)]
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)
    mirrors: list[dict[str, Any]] = []
