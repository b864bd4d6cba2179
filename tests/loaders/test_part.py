"""A part: every row once per epoch, in an order that is a pure function of what names it."""

from __future__ import annotations

import numpy as np
import pytest
from farshift import FarshiftError, load
from farshift.core.errors import UnknownName
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(1, 9000), st.one_of(st.none(), st.integers(0, 99)), st.integers(0, 5), st.booleans())
def test_every_row_comes_exactly_once_an_epoch(batch_size, seed, epoch, drop_last):
    part = load("modadd97/xi35", part="train")
    batches = list(part.batches(batch_size, seed=seed, epoch=epoch, drop_last=drop_last))
    ids = np.concatenate([np.zeros(0, np.uint64), *(batch["row_id"] for batch in batches)])
    assert len(np.unique(ids)) == len(ids)
    expected = len(part) - (len(part) % batch_size if drop_last else 0)
    assert len(ids) == expected
    assert all(len(batch["row_id"]) == batch_size for batch in batches[:-1])
    for batch in batches[:3]:
        truth = (batch["a"] + batch["b"]) % 97
        assert ((batch["sum"] != truth) == batch["corrupted"]).all(), "columns stay together"


def test_order_is_stored_order_without_a_seed_and_a_pure_function_with_one():
    part = load("scan/length", part="train")

    def order(**named) -> list[int]:
        return np.concatenate([batch["row_id"] for batch in part.batches(1000, columns=["row_id"], **named)]).tolist()

    assert order() == part.row_ids.tolist() == sorted(part.row_ids.tolist())
    assert order(seed=0) == order(seed=0)
    assert len({tuple(order(seed=seed, epoch=epoch)) for seed in (0, 1) for epoch in (0, 1)}) == 4


def test_columns_have_their_field_types():
    part = load("scan/addprim_jump", part="train")
    columns = part.numpy()
    assert set(columns) == {"command", "actions", "row_id", "weight", "group", "severity"}
    assert all(isinstance(text, str) for text in columns["command"][:5])
    assert columns["weight"].sum() == part.weighted_rows == 14670
    assert part.arrow().num_rows == len(part) == 13204
    grid = load("modadd97/xi35").numpy(["a"])["a"]
    assert grid.dtype == np.int64


def test_a_tensor_field_keeps_its_shape():
    try:
        part = load("optdigits/writers", part="ood_test")
    except FarshiftError as error:
        pytest.skip(str(error))
    pixels = part.numpy(["pixels"])["pixels"]
    assert pixels.shape == (1797, 8, 8)
    assert pixels.dtype == np.uint8
    assert next(part.batches(10))["pixels"].shape == (10, 8, 8)


def test_single_rows_and_selections():
    part = load("scan/length", part="ood_test")
    row = part[0]
    assert row["command"] == part.numpy(["command"])["command"][0]
    assert part[-1]["row_id"] == part.row_ids[-1]
    with pytest.raises(IndexError, match="row 3920 is out of range for a part of 3920 rows"):
        part[3920]
    long = part.select(part.row_metadata["severity"] == 48)
    assert 0 < len(long) < len(part)
    assert set(long.arrow()["severity"].to_pylist()) == {48}


def test_what_does_not_exist_is_refused_with_what_does():
    with pytest.raises(UnknownName, match="no part of scan/length@1 named 'test': .*ood_test"):
        load("scan/length", part="test")
    with pytest.raises(UnknownName, match="no column named 'comand': did you mean command"):
        load("scan/length").numpy(["comand"])  # codespell:ignore comand
    with pytest.raises(FarshiftError, match="batch_size must be at least 1"):
        next(load("scan/length").batches(0))


def test_a_slice_of_a_part_is_its_rows():
    part = load("modadd97/xi35", "id_test")
    assert part[:3] == [part[0], part[1], part[2]]
    assert part[-2:] == [part[len(part) - 2], part[len(part) - 1]]
    assert part[5:5] == []
    assert [row["row_id"] for row in part[::1000]] == part.row_ids[::1000].tolist()


def test_loading_train_says_once_that_a_benchmark_holds_rows_out(caplog, capsys):
    from farshift import benchmark
    from farshift.loaders import split

    split._announced.clear()
    load("scan/length", part="ood_test")
    assert not caplog.records
    load("scan/length", part="train")
    load("scan/length", part="train")
    [record] = caplog.records
    assert record.getMessage() == (
        "train of scan/length: a benchmark may hold rows of it out for id_val and id_test; "
        'fs.benchmark("scan/length").load("train") gives the rows that its protocol trains on'
    )
    assert capsys.readouterr().out == ""
    benchmark("scan/length").load("train")
    assert len(caplog.records) == 1


def test_the_name_of_rows_held_out_leads_to_the_benchmark():
    from farshift import benchmark

    with pytest.raises(UnknownName, match=r'fs\.benchmark\("scan/length"\)\.load\("id_test"\)'):
        load("scan/length", part="id_test")
    assert repr(benchmark("scan/length").load("id_test")).startswith(
        "Part(scan/length@1, id_test, held out of train: 1,699 rows"
    )


def test_batches_are_the_caller_s_own():
    part = load("modadd97/xi35").select(np.arange(20))
    first, second = list(part.batches(10))
    before = second["sum"].tolist()
    first["a"][:], first["sum"][:] = -1, -1
    assert second["sum"].tolist() == before
    assert (next(part.batches(10))["a"] >= 0).all()
