"""Files and folders pinned by content."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _check_relative_path(name: str) -> str:
    """A name, with folders or without, that leads nowhere out of the folder it is put in."""
    if not name.isprintable() or "\\" in name or {"", ".", ".."} & set(name.split("/")):
        raise ValueError(f"{name!r} is no name of a file, or of one in folders below")
    return name


class FilePin(BaseModel):
    """One file: what it must be, and where it can be had (`mirrors`, each a table with its `sort`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, AfterValidator(_check_relative_path)]
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)
    mirrors: list[dict[str, Any]] = []


class UnpinnedFile(BaseModel):
    """A file whose sha256 nobody has published: its size or md5 where they are known. It is pinned when it is first
    read, and the rows that it gives are held to published counts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, AfterValidator(_check_relative_path)]
    bytes: int | None = Field(None, ge=0)
    md5: str | None = Field(None, pattern=r"^[0-9a-f]{32}$")
    mirrors: list[dict[str, Any]] = []


class TreePin(BaseModel):
    """A folder of many files: the hash that git gives it (empty: pinned when it is first read), and where it can be
    had. Each mirror gives one archive or folder of all its files, never a file each. `plain` is the hash with no file
    executable, where some are and a copy may not say so."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, AfterValidator(_check_relative_path)]
    tree: str = Field("", pattern=r"^([0-9a-f]{40})?$")
    plain: str = Field("", pattern=r"^([0-9a-f]{40})?$")
    files: int | None = Field(None, ge=1)
    mirrors: list[dict[str, Any]] = []
