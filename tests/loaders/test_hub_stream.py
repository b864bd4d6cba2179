"""Streams from file servers and the Hub, of files that Farshift or others wrote: the local part, batch for batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from farshift import stream
from farshift.core.draws import draw_permutation
from farshift.loaders.acquire.source import find_source
from farshift.loaders.stream.part import EpochTally
from hub_rows import CORRUPTED, SORTS, TEXTS, Shop, ids, plain, send_clients_to, stocked
from hub_server import serving
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture(scope="module", params=[TEXTS, CORRUPTED], ids=["texts", "corrupted labels"])
def shop(request, tmp_path_factory) -> Iterator[Shop]:
    with serving() as hub:
        yield stocked(hub, request.param, tmp_path_factory.mktemp("shop"), 2_000_000)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Iterator[Shop]:
    with serving() as hub:
        yield stocked(hub, TEXTS, tmp_path_factory.mktemp("small"))


def check_is_the_part(streamed, part) -> None:
    assert (len(streamed), streamed.columns) == (len(part), part.columns)
    for numbers in ({"seed": None}, {"seed": 1, "epoch": 2}, {"seed": 1, "start": 2, "world": 2, "rank": 1}):
        assert plain(streamed.batches(128, **numbers)) == plain(part.batches(128, **numbers))


@pytest.mark.parametrize("how", ["plain", "redirect", "hf"])
def test_the_shards_of_an_export_are_the_part_wherever_they_lie(shop, how, tmp_path, monkeypatch):
    send_clients_to(shop.hub, monkeypatch, tmp_path)
    shop.restock()
    check_is_the_part(stream(shop.name, shop.part.name, shop.address("shards", how=how)), shop.part)


def test_texts_come_as_bytes_and_offsets_too(shop):
    streamed = stream(shop.name, shop.part.name, shop.address("shards"))
    there, here = (part.batches(100, seed=4, text="bytes") for part in (streamed, shop.part))
    assert plain(there) == plain(here)


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
    source: str | list[str] = [shop.hub.plain(f"data/{name}", "theirs") for name in names]
    if how == "hf":
        source = "hf://datasets/farshift/rows@theirs/data/*.parquet"
    check_is_the_part(stream(shop.name, shop.part.name, source), shop.part)


@pytest.mark.parametrize("how", ["plain", "hf"])
def test_shards_that_the_webdataset_library_wrote_hold_the_part(small, how, tmp_path, monkeypatch):
    send_clients_to(small.hub, monkeypatch, tmp_path / "hf")
    webdataset = pytest.importorskip("webdataset")
    folder = tmp_path / "out"
    folder.mkdir()
    (table,) = as_published(small, 1)
    with webdataset.ShardWriter(str(folder / "theirs-%02d.tar"), maxcount=len(table) // 2 + 1, verbose=0) as writer:
        for key, row in enumerate(table.to_pylist()):
            writer.write({"__key__": f"{key:06d}", "json": row})
    small.hub.commit_folder(folder, "data/", branch="theirs")
    source = small.hub.plain("data/theirs-{00..01}.tar", "theirs")
    if how == "hf":
        source = "hf://datasets/farshift/rows@theirs/data/*.tar"
    check_is_the_part(stream(small.name, small.part.name, source), small.part)


legs = st.lists(st.tuples(st.sampled_from([1, 2, 3, 6]), st.integers(1, 3), st.integers(0, 8)), max_size=3)


@pytest.mark.parametrize("sort", SORTS)
@given(
    legs=legs,
    last=st.sampled_from([1, 2, 3, 6]),
    each=st.integers(10, 60),
    seed=st.one_of(st.none(), st.integers(0, 9)),
    rows=st.integers(0, 1000),
    drop_last=st.booleans(),
)
@settings(max_examples=12)
def test_an_epoch_left_and_taken_up_by_other_worlds_gives_every_row_once(
    small, sort, legs, last, each, seed, rows, drop_last
):
    chosen = np.arange(1000)[:rows]
    streamed = stream(small.name, small.part.name, small.address(sort)).select(chosen)
    size, at = 6 * each, 0
    full = ids(plain(small.part.select(chosen).batches(size, seed, drop_last=drop_last, columns=["row_id"])))
    seen: list[int] = []
    tally = EpochTally()
    for world, workers, steps in [*legs, (last, 1, 10**6)]:
        result: dict[int, list[int]] = {}
        for rank in range(world):
            for worker in range(workers):
                own = streamed.batches(
                    size, seed, 0, drop_last, ["row_id"],
                    rank=rank, world=world, worker=worker, workers=workers, start=at,
                )  # fmt: skip
                for step, batch in zip(range(at + worker, at + steps, workers), own, strict=False):
                    result.setdefault(step, []).extend(batch["row_id"].tolist())
                own.close()
                tally += own.tally
        seen += [row for step in sorted(result) for row in result[step]]
        at += len(result)
    assert seen == full
    assert tally == streamed.tally(size, seed, drop_last=drop_last)
    assert len(set(seen)) == len(seen) == rows - (rows % size if drop_last else 0)
