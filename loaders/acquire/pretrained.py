"""Pretrained networks by name, pinned as sources are: `loaders/weights/<name>.toml` has the files of one network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic import Field as Item

from ...core.canonical import compute_identity
from ...core.errors import BadDefinition
from ...core.plugins import find_files_by_name, read_definition
from ...splits.manifest import FilePin
from .fetch import fetch_file

FOLDER = "loaders/weights"
TRANSFORMERS = "transformers"
"""The architecture of networks whose files are a folder of transformers."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PublishedScore(_Strict):
    """A score that the authors state. value: in percent."""

    metric: str
    value: float
    on: str
    source: str


class PretrainedNetwork(_Strict):
    """The content of `<name>.toml`. architecture: `transformers`, or a file of `baselines/backbones/`, built with
    `options`, that has the weights of the only file. preprocessing: how it reads images (`batching/transform.py`).
    trained_on: the data, by a short name."""

    name: str = Item(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    title: str
    licence: str
    citation: str
    homepage: str
    notes: str = ""
    trained_on: str
    architecture: str
    options: dict[str, Any] = {}
    preprocessing: str = ""
    published: list[PublishedScore] = []
    files: list[FilePin] = Item(min_length=1)

    @property
    def bytes(self) -> int:
        """The total size of its files."""
        return sum(file.bytes for file in self.files)

    @property
    def digest(self) -> str:
        """sha256 over all that determines its outputs: its files, architecture and preprocessing."""
        record = self.model_dump(include={"architecture", "options", "preprocessing"})
        return compute_identity(record | {"files": {file.name: file.sha256 for file in self.files}})

    def fetch(self, own_folders: tuple[Path, ...] = ()) -> dict[str, Path]:
        """Fetch the files into the cache, each checked by sha256; return their paths by name. `Unavailable` with each
        mirror's reason if none has a file."""
        return {file.name: fetch_file(file, own_folders) for file in self.files}


def load_pretrained_networks() -> dict[str, PretrainedNetwork]:
    """All networks of this package and of `FARSHIFT_PATH`, by name, sorted."""
    return {name: _read(path) for name, path in sorted(find_files_by_name(FOLDER, ".toml").items())}


def find_pretrained_network(name: str) -> PretrainedNetwork | None:
    """The network called `name`; None if there is none."""
    path = find_files_by_name(FOLDER, ".toml").get(name)
    return None if path is None else _read(path)


def _read(path: Path) -> PretrainedNetwork:
    network = read_definition(path, PretrainedNetwork)
    if network.name != path.stem:
        raise BadDefinition(f"{path} has the name {network.name!r}: it must be that of its file, {path.stem!r}")
    if network.architecture != TRANSFORMERS and (len(network.files) != 1 or not network.preprocessing):
        raise BadDefinition(f"{path}: a network that is not of transformers has exactly one file, and preprocessing")
    return network
