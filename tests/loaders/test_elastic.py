"""Batches of a part: the same global batches for any ranks and workers, resumed anywhere, in every form of reading."""

from __future__ import annotations

from dataclasses import replace

import farshift.loaders.part
import numpy as np
import pyarrow as pa
import pytest
from farshift import load
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


@given(world=st.sampled_from([1, 2, 3, 4, 6, 12]), workers=st.integers(1, 5), **numbers)
def test_global_batches_are_the_same_rows_for_every_world_and_number_of_workers(
    rows, each, seed, drop_last, world, workers
):
    part = some("modadd97/xi35", rows)
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


@given(world=st.sampled_from([1, 2, 4]), workers=st.integers(1, 3), **numbers)
def test_parts_too_large_for_a_stored_order_keep_the_same_promises(rows, each, seed, drop_last, world, workers):
    part = some("modadd97/xi35", rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(farshift.loaders.batching.order, "STORED_ROWS", 10)
        alone = global_batches(part, 4 * each, 1, 1, seed=seed, drop_last=drop_last)
        assert global_batches(part, 4 * each, world, workers, seed=seed, drop_last=drop_last) == alone
        ids = [row for batch in alone.values() for row in batch]
        assert len(set(ids)) == len(ids) == rows - (rows % (4 * each) if drop_last else 0)
    if seed is not None and rows > 40 and not drop_last:
        assert ids != [row for batch in global_batches(part, 4 * each, 1, 1, seed=seed).values() for row in batch]


def test_ranks_without_a_row_in_the_last_batch_still_have_that_batch():
    part = some("modadd97/xi35", 9)
    lasts = [list(part.batches(8, seed=0, rank=rank, world=8))[-1] for rank in range(8)]
    assert sorted(len(batch["a"]) for batch in lasts) == [0] * 7 + [1]


@pytest.mark.parametrize("name", ["modadd97/xi35", "scan/addprim_jump", "prefix_sums/32_to_64"])
@pytest.mark.parametrize("seed", [None, 3])
def test_batches_are_the_rows_of_the_whole_whatever_the_form(name, seed):
    part = some(name, 700)
    full = part.numpy()
    order = part.order(seed, 1).at(np.arange(700))
    for start, batch in zip(range(0, 700, 64), part.batches(64, seed=seed, epoch=1), strict=True):
        rows = order[start : start + 64]
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
