"""Texts of role meta are codes in batches, and texts where they are asked for."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
import pytest
import torch
from farshift import FarshiftError, load, stream
from farshift.core.errors import UnknownName
from farshift.loaders.batching import columns
from farshift.loaders.part import Part
from farshift.splits.schema import Field, Schema

TEXTS = ["Ü", "", "paris", "rome", "paris", "Ü", "a\x00b", "rome", "😀", "paris"]
FIELDS = (
    Field("words", "string", "input"),
    Field("place", "string", "meta"),
    Field("year", "int64", "meta"),
    Field("kind", "int64", "label"),
)


def part(places: list[int], kind: pa.DataType | None = None) -> Part:
    rows = np.arange(10)
    half = [pa.array(TEXTS[:4], kind), pa.array(TEXTS[4:], kind)]
    table = pa.table(
        {
            "words": [f"word {row}" for row in rows],
            "place": pa.chunked_array(half),
            "year": rows + 1990,
            "kind": rows % 2,
            "row_id": rows.astype(np.uint64),
        }
    )
    return Part("bench/small", "0" * 64, "train", Schema(FIELDS), "kind", table, np.array(places), {})


@pytest.mark.parametrize("places", [range(10), range(2, 7), [9, 0, 3, 3]])
@pytest.mark.parametrize("seed", [None, 1])
def test_codes_stand_for_the_texts_that_are_given_when_asked_for(places, seed) -> None:
    here = part(list(places))
    assert here.coded == ("place",)
    assert here.categories("place").tolist() == sorted(set(TEXTS)), "ascending, and of all parts"
    pairs = zip(here.batches(3, seed=seed), here.batches(3, seed=seed, text="str"), strict=True)
    for coded, plain in pairs:
        assert list(coded) == list(plain)
        assert coded["place"].dtype == np.int32
        assert here.categories("place")[coded["place"]].tolist() == plain["place"].tolist()
        assert coded["words"].tolist() == plain["words"].tolist()
        assert coded["year"].tolist() == plain["year"].tolist()
    assert here.numpy()["place"].tolist() == [TEXTS[position] for position in places]


def test_torch_streams_and_devices_have_codes_as_numbers() -> None:
    here = part(list(range(10)))
    (batch,) = here.torch(10, seed=None)
    there = next(here.on_device("cpu", ["place", "year"]).batches(10))
    codes = next(here.batches(10))["place"]
    for result in (batch["place"], there["place"]):
        assert result.dtype == torch.int32
        assert result.numpy().tolist() == codes.tolist()
    assert next(iter(here.torch(10, seed=None, text="str")))["place"] == TEXTS


def test_what_is_no_column_of_codes_is_refused() -> None:
    here = part(list(range(10)))
    with pytest.raises(UnknownName, match="no column of codes named 'words'"):
        here.categories("words")
    with pytest.raises(FarshiftError, match="text must be 'codes' or 'str'"):
        next(here.batches(2, text="code"))


def test_parts_of_one_source_share_its_codes_for_as_long_as_it_is_there() -> None:
    gc.freeze()  # only what comes now is looked through
    before = len(columns._CODED)
    here = part(list(range(10)))
    assert columns.encode_categories(here.source, "place") is columns.encode_categories(
        here.select(np.arange(3)).source, "place"
    )
    assert len(columns._CODED) == before + 1
    del here
    gc.collect()
    assert len(columns._CODED) == before


def test_batches_are_the_caller_s_own() -> None:
    here = part(list(range(10)))
    first, second = list(here.batches(5))
    first["place"][:], first["kind"][:] = -1, -1
    assert second["place"].min() >= 0
    assert next(here.batches(5))["kind"].tolist() == [0, 1, 0, 1, 0]


def test_a_stream_gives_texts_and_no_codes(tmp_path) -> None:
    here = load("optdigits/writers")
    there = stream("optdigits/writers", "train", here.to_webdataset(tmp_path / "shards"))
    item, other = next(there.batches(64, seed=0)), next(here.batches(64, seed=0, text="str"))
    assert list(item) == list(other)
    assert item["writers"].tolist() == other["writers"].tolist()
    with pytest.raises(UnknownName, match="no column of codes named 'writers'"):
        there.categories("writers")
    assert next(iter(there.torch(8)))["writers"] == other["writers"].tolist()[:8]
