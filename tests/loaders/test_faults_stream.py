"""A stream through every fault of a network: the local part's rows, or one error after which it goes on exactly there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from farshift import FarshiftError, stream
from farshift.core import retry
from farshift.core.errors import BadData, Unavailable
from farshift.loaders.files import http
from farshift.loaders.stream import files as remote_files
from hub_faults import (
    LONG,
    Cut,
    Flip,
    IgnoreRange,
    Meanwhile,
    OtherRange,
    Refuse,
    WrongLength,
)
from hub_rows import SORTS, TEXTS, Shop, content_byte, drained, plain, stocked
from hub_server import serving
from hypothesis import given, settings
from hypothesis import strategies as st

MEMORY = {"shards": 1 << 20, "parquet": 1 << 16}  # an epoch takes several requests
BODY = {"shards": "GET */shards/*-00000[12].tar", "parquet": "GET */parquet/rows.parquet"}


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Iterator[Shop]:
    with serving() as hub, pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry, "PAUSE", 0.002)
        patch.setattr(http, "STALL", LONG)
        patch.setattr(remote_files, "SHARE", 0)  # what is kept is not asked for, and meets no fault
        yield stocked(hub, TEXTS, tmp_path_factory.mktemp("shop"))


def opened(shop: Shop, sort: str):
    """A stream of the whole exports, opened before anything goes wrong."""
    shop.restock()
    return stream(shop.name, shop.part.name, shop.address(sort), memory=MEMORY[sort])


def epoch(part, start: int = 0):
    return part.batches(64, seed=3, start=start)


def check_ends_well(shop: Shop, streamed, reason: str, again=None, kind: type[FarshiftError] = BadData) -> None:
    """The contract: what was handed out is right, whatever came; an error is one line; the rest follows exactly, from
    the same stream or from one that is opened `again`."""
    full = plain(epoch(shop.part))
    accepted, error = drained(epoch(streamed))
    assert accepted == full[: len(accepted)]
    assert isinstance(error, kind)
    assert "\n" not in str(error)
    assert reason in str(error)
    shop.restock()
    rest, error = drained(epoch(again() if again else streamed, start=len(accepted)))
    assert error is None
    assert accepted + rest == full


@pytest.mark.parametrize("sort", SORTS)
def test_one_wrong_bit_is_an_error_that_names_the_file_and_never_a_wrong_row(shop, sort):
    streamed = opened(shop, sort)
    shop.hub.faults.plan(BODY[sort], Flip(content_byte(shop, sort, shard=1)), 99)
    check_ends_well(shop, streamed, shop.address(sort))


REFUSED = {
    "absent": (Refuse(404), "the server answered 404"),
    "down": (Refuse(500), "could not be read in 6 tries (the server answered 500): try again later"),
    "busy": (Refuse(429, "0"), "the server answered 429"),
    "cut": (Cut(0), "could not be read in 6 tries"),
    "no ranges": (IgnoreRange(), "does not support range requests"),
    "another range": (OtherRange(1), "were requested, but Content-Range is"),
}


@pytest.mark.parametrize(("fault", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_lasting_fault_is_one_error_and_what_is_left_follows(shop, fault, reason):
    streamed = opened(shop, "shards")
    shop.hub.faults.plan(BODY["shards"], fault, 99)
    check_ends_well(shop, streamed, reason, kind=Unavailable)


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("fault", [None, Cut(1_000)], ids=["between two requests", "within one"])
def test_a_file_that_is_replaced_while_an_epoch_is_read_is_never_mixed(shop, sort, fault):
    streamed = opened(shop, sort)
    others = {path: content[::-1] for path, content in shop.files.items()}
    shop.hub.faults.plan(BODY[sort], Meanwhile(lambda: shop.hub.commit(others), fault))
    check_ends_well(shop, streamed, shop.address(sort), again=lambda: opened(shop, sort))


@pytest.mark.parametrize("file", ["shards/manifest.json", "shards/prefix_sums-32_to_64-id_test.index.parquet"])
def test_one_wrong_bit_in_what_describes_the_shards_is_an_error_or_changes_no_row(shop, file):
    size = len(shop.files[file])
    for at in range(0, size, size // 7):
        shop.restock()
        shop.hub.faults.plan(f"GET */{file}", Flip(at), 99)
        try:
            streamed = stream(shop.name, shop.part.name, shop.address("shards"))
            assert plain(epoch(streamed)) == plain(epoch(shop.part))
        except FarshiftError as error:
            assert "\n" not in str(error)


some_fault = st.one_of(
    st.builds(Cut, st.integers(0, 60_000), st.booleans()),
    st.builds(WrongLength, st.integers(-9_000, 9_000)),
    st.builds(Flip, st.integers(0, 300_000)),
    st.builds(Refuse, st.sampled_from([404, 429, 500]), st.just("0")),
    st.builds(OtherRange, st.integers(1, 5_000)),
    st.just(IgnoreRange()),
)
troubles = st.lists(st.tuples(some_fault, st.integers(0, 4), st.sampled_from([1, 2, 9])), max_size=5)


@pytest.mark.parametrize("sort", SORTS)
@given(troubles=troubles, seed=st.integers(0, 99))
@settings(max_examples=12)
def test_through_any_faults_an_epoch_resumed_after_each_error_is_every_row_once(shop, sort, troubles, seed):
    streamed = opened(shop, sort)
    for fault, skip, times in troubles:
        shop.hub.faults.plan(BODY[sort], fault, times, skip)
    accepted: list = []
    error: FarshiftError | None = None
    for _ in range(1 + sum(times for _, _, times in troubles)):
        more, error = drained(streamed.batches(64, seed, start=len(accepted)))
        accepted += more
        if error is None:
            break
        assert "\n" not in str(error)
    assert error is None, "each try spends a fault at least"
    assert accepted == plain(shop.part.batches(64, seed))
