"""A part: its columns, rows and selections; and the same global batches for any ranks and workers, resumed anywhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from farshift import FarshiftError, load
from farshift.core.errors import UnknownName
from farshift.loaders.batching import order
from farshift.loaders.part import Part
from hypothesis import given
from hypothesis import strategies as st


def some(name: str, rows: int) -> Part:
    part = load(name, part="train")
    return part.select(np.arange(len(part))[:rows])


def global_batches(part: Part, size: int, world: int, workers: int, start: int = 0, **named) -> dict[int, list[int]]:
    """The row ids of each global batch, from all ranks and workers, in the order of the ranks."""
    result: dict[int, list[int]] = {}
    for rank in range(world):
        for worker in range(workers):
            own = part.batches(
                size, columns=["row_id"], rank=rank, world=world, worker=worker, workers=workers, start=start, **named
            )
            for step, batch in enumerate(own):
                result.setdefault(start + worker + step * workers, []).extend(batch["row_id"].tolist())
    return result


numbers = {
    "rows": st.integers(0, 150),
    "each": st.integers(1, 4),
    "seed": st.one_of(st.none(), st.integers(0, 9)),
    "drop_last": st.booleans(),
}


@pytest.mark.parametrize("stored", [order.STORED_ROWS, 10])
@given(world=st.sampled_from([1, 2, 3, 4, 6, 12]), workers=st.integers(1, 5), **numbers)
def test_global_batches_are_the_same_rows_for_every_world_and_number_of_workers(
    stored, rows, each, seed, drop_last, world, workers
):
    part = some("modadd97/xi35", rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "STORED_ROWS", stored)
        alone = global_batches(part, 12 * each, 1, 1, seed=seed, epoch=2, drop_last=drop_last)
        spread = global_batches(part, 12 * each, world, workers, seed=seed, epoch=2, drop_last=drop_last)
    assert spread == alone, "even in the same order, rank after rank"
    ids = [row for batch in alone.values() for row in batch]
    assert len(set(ids)) == len(ids) == rows - (rows % (12 * each) if drop_last else 0)


legs = st.lists(st.tuples(st.sampled_from([1, 2, 3, 6]), st.integers(1, 3), st.integers(0, 8)), max_size=4)


@given(legs=legs, last=st.sampled_from([1, 2, 3, 6]), **numbers)
def test_an_epoch_left_and_taken_up_by_other_worlds_gives_every_row_once(rows, each, seed, drop_last, legs, last):
    part, size, at = some("modadd97/xi35", rows), 6 * each, 0
    full = global_batches(part, size, 1, 1, seed=seed, drop_last=drop_last)
    seen: dict[int, list[int]] = {}
    for world, workers, steps in legs:
        ahead = global_batches(part, size, world, workers, at, seed=seed, drop_last=drop_last)
        seen |= {batch: ids for batch, ids in ahead.items() if batch < at + steps}
        at = min(at + steps, len(full))
    seen |= global_batches(part, size, last, 1, at, seed=seed, drop_last=drop_last)
    assert seen == full


@pytest.mark.parametrize("name", ["modadd97/xi35", "scan/addprim_jump", "prefix_sums/32_to_64"])
@pytest.mark.parametrize("seed", [None, 3])
def test_batches_are_the_rows_of_the_whole_whatever_the_form(name, seed):
    part = some(name, 700)
    full = part.numpy()
    positions = part.order(seed, 1).at(np.arange(700))
    for start, batch in zip(range(0, 700, 64), part.batches(64, seed=seed, epoch=1), strict=True):
        rows = positions[start : start + 64]
        assert {key: values.tolist() for key, values in batch.items()} == {
            key: values[rows].tolist() for key, values in full.items()
        }
        assert all(batch[key].dtype == full[key].dtype for key in batch)


@pytest.mark.parametrize("seed", [None, 0])
def test_batches_are_the_callers_own(seed):
    full = load("modadd97/xi35", part="train")
    for part in (full, replace(full, source_indices=np.arange(100, 400), row_metadata={}, override=None)):
        first = next(part.batches(64, seed=seed))
        stored = first["a"].tolist()
        first["a"][:] = -1
        assert next(part.batches(64, seed=seed))["a"].tolist() == stored


def test_a_batch_larger_than_any_memory_is_the_whole_part():
    part = some("modadd97/xi35", 50)
    (batch,) = part.batches(10**15, seed=0)
    assert sorted(batch["row_id"].tolist()) == part.row_ids.tolist()


def test_a_source_in_several_chunks_reads_like_one_in_one():
    for name in ("modadd97/xi35", "scan/addprim_jump", "prefix_sums/32_to_64"):
        part = some(name, 300)
        pieces = pa.concat_tables([part.source.slice(start, 5000) for start in range(0, len(part.source), 5000)])
        assert pieces["row_id"].num_chunks > 1
        cut = replace(part, source=pieces)
        for item, other in zip(part.batches(64, 1), cut.batches(64, 1), strict=True):
            assert {key: values.tolist() for key, values in item.items()} == {
                key: values.tolist() for key, values in other.items()
            }
        assert cut.arrow().equals(part.arrow())


def test_a_corrupted_text_label_is_read_as_it_was_given():
    part = some("scan/addprim_jump", 40)
    mask = np.arange(40) % 4 > 0
    given = np.ma.MaskedArray(np.array(["WRONG"] * 40, object), mask=mask)
    spoilt = replace(part, override=given)
    expected = np.where(mask, part.true_labels(), "WRONG").tolist()
    assert spoilt.observed_labels().tolist() == expected
    assert spoilt.true_labels().tolist() == part.true_labels().tolist()
    assert np.concatenate([batch[part.label] for batch in spoilt.batches(16)]).tolist() == expected
    assert spoilt.numpy()["corrupted"].tolist() == (~mask).tolist()


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
    assert row["command"] == part.numpy(["command"])["command"][0] == part.numpy("command")["command"][0]
    assert part[-1]["row_id"] == part.row_ids[-1]
    with pytest.raises(IndexError, match="row 3920 is out of range for a part of 3920 rows"):
        part[3920]
    with pytest.raises(TypeError, match="a part is indexed by a row number or a slice, not 'command': select"):
        part["command"]
    long = part.select(part.row_metadata["severity"] == 48)
    assert 0 < len(long) < len(part)
    assert set(long.arrow()["severity"].to_pylist()) == {48}


def test_what_does_not_exist_is_refused_with_what_does():
    with pytest.raises(UnknownName, match="no part of scan/length@1 named 'test': .*ood_test"):
        load("scan/length", part="test")
    with pytest.raises(UnknownName, match="no column named 'comand': did you mean command"):
        load("scan/length").numpy(["comand"])  # codespell:ignore comand
    with pytest.raises(FarshiftError, match="batch_size must be a whole number from 1"):
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
