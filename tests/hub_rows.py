"""Published parts, exported once and served as shards and as Parquet, and what reading them back must give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from farshift import FarshiftError, load
from farshift.loaders.part import Part
from hub_server import REPOSITORY, Hub

TEXTS = ("prefix_sums/32_to_64", "id_test")
CORRUPTED = ("modadd97/xi35", "train")

SORTS = ["shards", "parquet"]

Batches = list[dict[str, list[Any]]]


@dataclass
class Shop:
    """A server with the exports of one part: `shards/` and `parquet/rows.parquet`."""

    hub: Hub
    name: str
    part: Part
    files: dict[str, bytes]

    def restock(self) -> str:
        """The exports as they were made, and no faults; the new commit."""
        self.hub.faults.clear()
        self.hub.requests.clear()
        return self.hub.commit(self.files)

    def address(self, sort: str, revision: str = "main", how: str = "plain") -> str:
        """Where a stream finds the part as `shards` or `parquet`: `plain`, by `resolve`, or as an `hf` path."""
        path = {"shards": "shards", "parquet": "parquet/rows.parquet"}[sort]
        if how == "hf":
            return f"hf://datasets/{REPOSITORY}@{revision}/{path}"
        return self.hub.plain(path, revision) if how == "plain" else self.hub.resolve(path, revision)


def content_byte(shop: Shop, sort: str, shard: int = 0) -> int:
    """The place of a byte that holds a row's content: in a member of a shard, in a column's values in Parquet."""
    if sort == "shards":
        (content,) = (content for path, content in shop.files.items() if path.endswith(f"-{shard:06d}.tar"))
        return content.index(b'"bits":"') + 10
    footer = pq.read_metadata(BytesIO(shop.files["parquet/rows.parquet"]))
    return footer.row_group(0).column(0).data_page_offset + 200


def stocked(hub: Hub, where: tuple[str, str], folder: Path, shard_bytes: int = 400_000) -> Shop:
    """A shop of one part; its shards and its Parquet file are those that `Part` writes."""
    part = load(*where)
    shards = part.to_webdataset(folder / "shards", shard_bytes)
    files = {f"shards/{path.name}": path.read_bytes() for path in sorted(shards.iterdir())}
    files["parquet/rows.parquet"] = part.to_parquet(folder / "rows.parquet").read_bytes()
    shop = Shop(hub, where[0], part, files)
    shop.restock()
    return shop


def plain(batches: Iterable[dict[str, Any]]) -> Batches:
    """Batches of arrays or tensors as plain values, with the columns in one order."""
    return [{name: batch[name].tolist() for name in sorted(batch)} for batch in batches]


def drained(batches: Iterable[dict[str, Any]]) -> tuple[Batches, FarshiftError | None]:
    """What a reader gives until it ends, or until the first error; and that error."""
    accepted: Batches = []
    try:
        for batch in batches:
            accepted += plain([batch])
    except FarshiftError as error:
        return accepted, error
    return accepted, None


def send_clients_to(hub: Hub, patch: pytest.MonkeyPatch, home: Path) -> None:
    """Send the Hub's client of this process to the server, with its cache under `home`. It made up its addresses when
    it was imported, so the environment is too late; and a process of its own for each test would cost seconds."""
    from huggingface_hub import constants

    patch.setattr(constants, "ENDPOINT", hub.url)
    patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}")
    patch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    patch.setattr(constants, "HF_HUB_OFFLINE", False)


def ids(batches: Sequence[dict[str, Any]]) -> list[int]:
    return [row for batch in batches for row in batch["row_id"]]
