"""A stream from a Hub whose branches move and whose answers fail: one commit's rows, or one error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from farshift import FarshiftError, stream
from farshift.core import retry
from farshift.core.errors import Unavailable
from farshift.loaders.stream import files as remote_files
from hub_faults import LONG, Cut, Fault, Meanwhile, Refuse
from hub_rows import SORTS, TEXTS, Shop, drained, plain, send_clients_to, stocked
from hub_server import REPOSITORY, serving

MEMORY = 1 << 16


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Iterator[Shop]:
    with serving() as hub, pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry, "PAUSE", 0.002)
        patch.setattr(remote_files, "STALL", LONG)
        send_clients_to(hub, patch, tmp_path_factory.mktemp("hf"))
        yield stocked(hub, TEXTS, tmp_path_factory.mktemp("shop"), 2_000_000)


def opened(shop: Shop, sort: str, revision: str = "main"):
    return stream(shop.name, shop.part.name, shop.address(sort, revision, "hf"), memory=MEMORY)


def epoch(part):
    return part.batches(100, seed=5)


def move(shop: Shop) -> str:
    """The branch goes on to a commit of other files of the same names; that commit."""
    return shop.hub.commit({path: content[::-1] for path, content in shop.files.items()})


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("when", ["*/revision/main", "*/tree/*", "GET */resolve/*", "GET /large/*"])
def test_a_branch_that_moves_while_a_stream_is_opened_or_read_moves_nothing_in_it(shop, sort, when):
    shop.restock()
    shop.hub.faults.plan(when, Meanwhile(lambda: move(shop)))
    streamed = opened(shop, sort)
    assert drained(epoch(streamed)) == (plain(epoch(shop.part)), None)
    assert shop.hub.faults.left == 0
    with pytest.raises(FarshiftError):
        opened(shop, sort)


SURVIVED: dict[str, tuple[str, list[Fault]]] = {
    "the Hub is busy": ("GET /api/*", [Refuse(503), Refuse(429, "0")]),
    "the Hub hangs up": ("GET /api/*", [Cut(0)]),
    "the redirect is busy": ("GET */resolve/*", [Refuse(500), Refuse(429, "0")]),
}


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize(("where", "faults"), SURVIVED.values(), ids=SURVIVED)
def test_a_passing_fault_of_the_hub_changes_nothing(shop, sort, where, faults):
    shop.restock()
    for fault in faults:
        shop.hub.faults.plan(where, fault)
    assert drained(epoch(opened(shop, sort))) == (plain(epoch(shop.part)), None)
    assert shop.hub.faults.left == 0


REFUSED: dict[str, tuple[str, Fault, str]] = {
    "no such data set": ("GET /api/*", Refuse(404), "is not on the Hub"),
    "the Hub is down": ("GET /api/*", Refuse(500), "could not be fetched in 6 tries"),
    "the redirect is down": ("GET */resolve/*", Refuse(503), "answered 503"),
}


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize(("where", "fault", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_lasting_fault_of_the_hub_is_one_error(shop, sort, where, fault, reason):
    shop.restock()
    shop.hub.faults.plan(where, fault, times=999)
    with pytest.raises(Unavailable, match=reason) as refused:
        plain(epoch(opened(shop, sort)))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("address", ["@absent/shards", "@main/absent", "@main/*.parquet", "2/shards"])
def test_what_is_not_on_the_hub_is_one_error(shop, address):
    shop.restock()
    with pytest.raises(Unavailable) as refused:
        stream(shop.name, shop.part.name, f"hf://datasets/{REPOSITORY}{address}")
    assert "\n" not in str(refused.value)
