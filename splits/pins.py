"""Files and folders pinned by content."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _check_relative_path(name: str) -> str:
    """Check that a relative path stays inside its folder."""
    if not name.isprintable() or "\\" in name or {"", ".", ".."} & set(name.split("/")):
        raise ValueError(f"{name!r} is no name of a file, or of one in folders below")
    return name


class FilePin(BaseModel):
    """One file: its pinned content, and where to download it (`mirrors`, each a table with its `sort`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, AfterValidator(_check_relative_path)]
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)
    mirrors: list[dict[str, Any]] = []


class UnpinnedFile(BaseModel):
    """A file without a published sha256: its size or md5, if known. Its sha256 is pinned when it is first read, and the
    resulting rows are checked against published counts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, AfterValidator(_check_relative_path)]
    bytes: int | None = Field(None, ge=0)
    md5: str | None = Field(None, pattern=r"^[0-9a-f]{32}$")
    mirrors: list[dict[str, Any]] = []


class TreePin(BaseModel):
    """A folder of many files: its git tree hash (empty: pinned when it is first read), and where to download it. Each
    mirror gives one archive or folder of all files, never single files. `plain` is the hash with no file executable,
    for copies that lose the executable bit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, AfterValidator(_check_relative_path)]
    tree: str = Field("", pattern=r"^([0-9a-f]{40})?$")
    plain: str = Field("", pattern=r"^([0-9a-f]{40})?$")
    files: int | None = Field(None, ge=1)
    mirrors: list[dict[str, Any]] = []
