"""A streamed part stands for the local one: the same batches in the same order, for any ranks, workers and resumes."""

from __future__ import annotations

from dataclasses import replace
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pyarrow.parquet as pq
import pytest
from farshift import FarshiftError, stream
from farshift.core.errors import BadData, UnknownName
from farshift.loaders.split import open_split
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

PARTS = {"modadd97/xi35": "train", "scan/addprim_jump": "ood_test", "prefix_sums/32_to_64": "id_test"}
SORTS = ("shards", "source parquet")
FORMS = [(name, sort) for name in PARTS for sort in SORTS]


def local(name):
    return open_split(name).part(PARTS[name])


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Parts in every form that can be streamed, by name and sort."""
    result = {}
    for name in PARTS:
        folder = tmp_path_factory.mktemp("exports")
        opened, part = open_split(name), local(name)
        result[name, "shards"] = part.to_webdataset(folder / "shards", 1_500_000)
        rows = opened.rows.select([field.name for field in part.schema.fields])
        rows = rows.take(np.random.default_rng(0).permutation(rows.num_rows))
        (folder / "source").mkdir()
        half = rows.num_rows // 2
        for number, piece in enumerate((rows.slice(0, half), rows.slice(half))):
            pq.write_table(piece, folder / "source" / f"{number}.parquet", row_group_size=700)
        result[name, "source parquet"] = folder / "source"
    return result


@pytest.fixture(scope="module")
def streamed(places):
    return {form: stream(form[0], PARTS[form[0]], places[form]) for form in FORMS}


def same(one, other) -> bool:
    pairs = list(zip(one, other, strict=True))
    assert all(list(own) == list(yours) for own, yours in pairs)
    return all(
        own[key].dtype == yours[key].dtype and np.array_equal(own[key], yours[key])
        for own, yours in pairs
        for key in own
    )


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_a_stream_gives_what_the_local_part_gives(form, streamed):
    there, here = streamed[form], local(form[0])
    assert (len(there), there.columns) == (len(here), here.columns)
    assert same(there.batches(512), here.batches(512))
    share = {"seed": 5, "epoch": 2, "rank": 1, "world": 4, "worker": 1, "workers": 2, "start": 3}
    assert same(there.batches(512, **share), here.batches(512, **share))
    some = ["row_id", here.label]
    assert same(there.batches(512, columns=some), here.batches(512, columns=some))
    here_too = there.select(np.arange(40, 10, -1))
    assert here_too.arrow().equals(here.select(np.arange(40, 10, -1)).arrow())
    assert here_too[3] == here.select(np.arange(40, 10, -1))[3]
    assert (here_too.observed_labels() == here.observed_labels()[40:10:-1]).all()


def test_replaced_labels_need_an_index_that_tells_the_true_ones(tmp_path):
    own = local("modadd97/xi35").to_parquet(tmp_path / "train.parquet")
    with pytest.raises(BadData, match=r"lacks [\d,]+ of 4,704 rows of modadd97/xi35@1, train"):
        stream("modadd97/xi35", "train", own)


numbers = {
    "rows": st.integers(0, 90),
    "each": st.integers(1, 5),
    "world": st.sampled_from([1, 2, 3]),
    "workers": st.integers(1, 3),
    "start": st.integers(0, 6),
    "seed": st.one_of(st.none(), st.integers(0, 5)),
    "drop_last": st.booleans(),
}


@pytest.mark.parametrize("sort", ["shards", "source parquet"])
@given(**numbers)
@settings(max_examples=15)
def test_every_rank_and_worker_has_the_local_share(sort, rows, each, world, workers, start, seed, drop_last, streamed):
    there = streamed["modadd97/xi35", sort].select(np.arange(rows))
    here = local("modadd97/xi35").select(np.arange(rows))
    size = each * world
    for rank in range(world):
        for worker in range(workers):
            share = {"rank": rank, "world": world, "worker": worker, "workers": workers, "start": start}
            assert same(
                there.batches(size, seed, 1, drop_last, **share), here.batches(size, seed, 1, drop_last, **share)
            )


def test_forked_workers_of_a_loader_read_for_themselves(streamed):
    name = "prefix_sums/32_to_64"
    part = streamed[name, "shards"].select(np.arange(200))
    next(part.batches(32))  # threads and files of this process are open when it forks
    loader = DataLoader(part.torch(32), batch_size=None, num_workers=2, multiprocessing_context="fork")
    here = local(name).select(np.arange(200)).torch(32)
    assert [batch["row_id"].tolist() for batch in loader] == [batch["row_id"].tolist() for batch in here]


@pytest.mark.parametrize("sort", SORTS)
def test_a_stream_can_be_sent_to_another_process(streamed, sort):
    part = streamed["prefix_sums/32_to_64", sort]
    assert same(ForkingPickler.loads(ForkingPickler.dumps(part)).batches(99, seed=1), part.batches(99, seed=1))


def test_shards_of_other_rows_are_refused_by_name(places):
    open_split("scan/length")
    with pytest.raises(BadData, match=r"lacks [\d,]+ of 16,990 rows of scan/length@1, train \(first: \w{16}\)"):
        stream("scan/length", "train", places["scan/addprim_jump", "shards"])


def test_wrong_arguments_are_refused_at_once(places, streamed):
    name, folder = "modadd97/xi35", places["modadd97/xi35", "shards"]
    part = streamed[name, "shards"]
    for arguments, message in [
        ({"columns": ["c"]}, "no column named 'c'"),
        ({"rank": 2, "world": 2}, "rank must be in"),
    ]:
        with pytest.raises(FarshiftError, match=message):
            part.batches(32, **arguments)
    with pytest.raises(UnknownName, match="no part of modadd97/xi35@1 named 'ood'"):
        stream(name, "ood", folder)
    with pytest.raises(FarshiftError, match="memory must be a number of bytes, at least 1, not 0"):
        stream(name, "train", folder, memory=0)


@pytest.mark.parametrize("memory", [1, 5_000, 10**9])
@pytest.mark.parametrize("sort", ["shards", "source parquet"])
def test_the_memory_an_iterator_may_use_changes_nothing(streamed, sort, memory):
    part = streamed["modadd97/xi35", sort].select(np.arange(150))
    assert same(replace(part, memory=memory).batches(32, seed=1), part.batches(32, seed=1))
