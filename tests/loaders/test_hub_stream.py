"""Streams from file servers and the Hub, of files that Farshift or others wrote: the local part, batch for batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from farshift import FarshiftError, stream
from farshift.core import retry
from farshift.core.draws import draw_permutation
from farshift.core.errors import Unavailable
from farshift.loaders.acquire.source import find_source
from hub_faults import Fault, Meanwhile, Refuse
from hub_rows import (
    CORRUPTED,
    SORTS,
    TEXTS,
    Batches,
    Shop,
    drained,
    ids,
    plain,
    send_clients_to,
    stocked,
)
from hub_server import REPOSITORY, serving
from torch.utils.data import DataLoader


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


MEMORY = 1 << 16


@pytest.fixture(scope="module")
def faulty(tmp_path_factory) -> Iterator[Shop]:
    """A shop whose Hub this process's client asks, and which is asked again at once."""
    with serving() as hub, pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry, "PAUSE", 0.002)
        send_clients_to(hub, patch, tmp_path_factory.mktemp("hf"))
        yield stocked(hub, TEXTS, tmp_path_factory.mktemp("shop"), 2_000_000)


def epoch(part):
    return part.batches(100, seed=5)


def move(shop: Shop) -> str:
    """The branch goes on to a commit of other files of the same names; that commit."""
    return shop.hub.commit({path: content[::-1] for path, content in shop.files.items()})


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("when", ["*/revision/main", "*/tree/*", "GET */resolve/*", "GET /large/*"])
def test_a_branch_that_moves_while_a_stream_is_opened_or_read_moves_nothing_in_it(faulty, sort, when):
    faulty.restock()
    faulty.hub.faults.plan(when, Meanwhile(lambda: move(faulty)))
    address = faulty.address(sort, how="hf")
    streamed = stream(faulty.name, faulty.part.name, address, memory=MEMORY)
    assert drained(epoch(streamed)) == (plain(epoch(faulty.part)), None)
    assert faulty.hub.faults.left == 0
    with pytest.raises(FarshiftError):
        stream(faulty.name, faulty.part.name, address, memory=MEMORY)


REFUSED: dict[str, tuple[str, Fault, str]] = {
    "no such data set": ("GET /api/*", Refuse(404), "could not be listed: "),
    "the Hub is down": ("GET /api/*", Refuse(500), "could not be listed in 6 tries"),
    "the redirect is down": ("GET */resolve/*", Refuse(503), "answered 503"),
}


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize(("where", "fault", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_lasting_fault_of_the_hub_is_one_error(faulty, sort, where, fault, reason):
    faulty.restock()
    faulty.hub.faults.plan(where, fault, times=999)
    with pytest.raises(Unavailable, match=reason) as refused:
        plain(epoch(stream(faulty.name, faulty.part.name, faulty.address(sort, how="hf"), memory=MEMORY)))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("address", ["@absent/shards", "@main/absent", "@main/*.parquet", "2/shards"])
def test_what_is_not_on_the_hub_is_one_error(faulty, address):
    faulty.restock()
    with pytest.raises(Unavailable) as refused:
        stream(faulty.name, faulty.part.name, f"hf://datasets/{REPOSITORY}{address}")
    assert "\n" not in str(refused.value)


def test_of_a_data_set_only_the_folder_with_the_rows_is_listed(faulty):
    faulty.restock()
    for address in (faulty.address("parquet", how="hf"), faulty.address("shards", how="hf")):
        faulty.hub.requests.clear()
        stream(faulty.name, faulty.part.name, address)
        listed = [request.path.partition("/tree/")[2] for request in faulty.hub.requests if "/tree/" in request.path]
        assert {path.partition("/")[2] for path in listed} <= {address.split("/")[5]}


def opened(shop: Shop, sort: str):
    shop.restock()
    return stream(shop.name, shop.part.name, shop.address(sort), memory={"shards": 1 << 18, "parquet": 1 << 15}[sort])


def read(streamed, workers: int) -> tuple[Batches, FarshiftError | None]:
    """What a loader gives, to the end or to an error."""
    accepted, error = drained(DataLoader(streamed, batch_size=None, num_workers=workers))
    # Its traceback would hold the loader, and the loader its workers.
    return accepted, error and error.with_traceback(None)


@pytest.mark.filterwarnings("ignore:This DataLoader will create", "ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_fault_in_a_worker_is_the_named_error_and_a_state_goes_on_exactly_there(faulty, sort, workers):
    streamed = opened(faulty, sort).torch(50, columns=["row_id"])
    faulty.hub.faults.plan(f"GET */{sort}/*", Refuse(404), times=99, skip=8)
    accepted, error = read(streamed, workers)
    assert isinstance(error, Unavailable)
    assert "the server answered 404" in str(error)
    resumed = opened(faulty, sort).torch(50, columns=["row_id"])
    resumed.load_state_dict(streamed.state_at(len(accepted)))
    rest, error = read(resumed, 1)
    assert error is None
    assert ids(accepted + rest) == ids(plain(faulty.part.batches(50, seed=0, columns=["row_id"])))
