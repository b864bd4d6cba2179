"""Streams from file servers and the Hub, of files that Farshift or others wrote: the local part, batch for batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from farshift import stream
from farshift.core.draws import draw_permutation
from farshift.loaders.acquire.source import find_source
from hub_rows import CORRUPTED, TEXTS, Shop, plain, send_clients_to, stocked
from hub_server import serving


@pytest.fixture(scope="module", params=[TEXTS, CORRUPTED], ids=["texts", "corrupted labels"])
def shop(request, tmp_path_factory) -> Iterator[Shop]:
    with serving() as hub:
        yield stocked(hub, request.param, tmp_path_factory.mktemp("shop"), 2_000_000)


def check_is_the_part(streamed, part) -> None:
    assert (len(streamed), streamed.columns) == (len(part), part.columns)
    for numbers in ({"seed": None}, {"seed": 1, "epoch": 2}, {"seed": 1, "start": 2, "world": 2, "rank": 1}):
        assert plain(streamed.batches(128, **numbers)) == plain(part.batches(128, **numbers))


@pytest.mark.parametrize("how", ["plain", "redirect", "hf"])
def test_the_shards_of_an_export_are_the_part_wherever_they_lie(shop, how, tmp_path, monkeypatch):
    send_clients_to(shop.hub, monkeypatch, tmp_path)
    shop.restock()
    check_is_the_part(stream(shop.name, shop.part.name, shop.address("shards", how=how)), shop.part)


def as_published(shop: Shop, pieces: int) -> list:
    """The part's rows among others of its source, with their true labels, in tables of an order of their own."""
    source = find_source(shop.name.partition("/")[0])
    table = source.table()
    stored = np.flatnonzero(np.isin(table["row_id"].to_numpy(), shop.part.row_ids) | (np.arange(len(table)) % 10 == 0))
    order = stored[draw_permutation("tests/published", stored)]
    fields = table.select([field.name for field in source.schema.fields])
    return [fields.take(some) for some in np.array_split(order, pieces)]


@pytest.mark.parametrize("how", ["plain", "hf"])
def test_parquet_that_the_datasets_library_wrote_holds_the_part(shop, how, tmp_path, monkeypatch):
    send_clients_to(shop.hub, monkeypatch, tmp_path / "hf")
    datasets = pytest.importorskip("datasets")
    folder = tmp_path / "out"
    folder.mkdir()
    names = [f"train-{piece:05d}-of-00003.parquet" for piece in range(3)]
    for name, table in zip(names, as_published(shop, 3), strict=True):
        datasets.Dataset(table).to_parquet(folder / name, batch_size=1500)
    shop.hub.commit_folder(folder, "data/", branch="theirs")
    source = shop.hub.plain("data/train-{00000..00002}-of-00003.parquet", "theirs")
    if how == "hf":
        source = "hf://datasets/farshift/rows@theirs/data/*.parquet"
    check_is_the_part(stream(shop.name, shop.part.name, source), shop.part)
