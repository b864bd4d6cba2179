"""A part as a PyTorch stream: real workers, real ranks, real kills; every row once, in the one order."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
import torch
from farshift import FarshiftError, load
from farshift.core.errors import UnknownName
from farshift.loaders.part import Part
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),
]

WORKERS = [0, 1, 3]


@cache
def part(rows: int = 330) -> Part:
    return load("modadd97/xi35", part="train").select(np.arange(rows))


def ids(batches) -> list[list[int]]:
    return [batch["row_id"].tolist() for batch in batches]


def truth(rows: int = 330, size: int = 32, **named) -> list[list[int]]:
    return ids(part(rows).batches(size, **{"seed": 0} | named))


def loader(stream, workers: int, **named) -> DataLoader:
    return DataLoader(stream, batch_size=None, num_workers=workers, **named)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("drop_last", [False, True])
def test_a_loader_gives_the_epoch_in_order_for_any_number_of_workers(workers, drop_last):
    stream = part().torch(32, drop_last=drop_last)
    assert ids(loader(stream, workers)) == truth(drop_last=drop_last)
    assert len(stream) == len(loader(stream, workers)) == (10 if drop_last else 11)


def test_texts_are_lists():
    texts = load("scan/addprim_jump", part="train").select(np.arange(100))
    assert next(iter(texts.torch(32, seed=1)))["command"] == next(texts.batches(32, seed=1))["command"].tolist()


@pytest.mark.parametrize("workers", WORKERS)
def test_the_epoch_reaches_workers_that_live_on(workers):
    stream = part().torch(32, columns=["row_id"])
    passes = loader(stream, workers, persistent_workers=workers > 0)
    for epoch in (0, 1, 5):
        stream.set_epoch(epoch)
        assert ids(passes) == truth(epoch=epoch)
    assert ids(passes) == truth(epoch=5), "without a new epoch, the same again"


def test_a_stream_that_is_sent_to_a_spawned_worker_keeps_the_place_of_its_rank(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    sent = ForkingPickler.dumps(part(64).torch(32, columns=["row_id"]))
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")
    assert ids(loader(ForkingPickler.loads(sent), 1)) == truth(64, rank=1, world=2)


def legs_of(worlds):
    return st.lists(st.tuples(st.sampled_from(worlds), st.integers(0, 7)), max_size=4)


@given(legs_of([1, 2, 4]), st.sampled_from([1, 2, 4]), st.integers(0, 150), st.integers(0, 3), st.booleans())
def test_a_state_of_any_rank_resumes_any_world_with_no_row_lost_or_repeated(legs, last, rows, epoch, drop_last):
    full = truth(rows, 8, epoch=epoch, drop_last=drop_last)
    seen: list[list[int]] = []
    state = part(rows).torch(8, epoch=epoch).state_dict()
    for world, steps in [*legs, (last, len(full))]:
        streams = [part(rows).torch(8, drop_last=drop_last, rank=rank, world=world) for rank in range(world)]
        for stream in streams:
            stream.load_state_dict(json.loads(json.dumps(state)))
        reading = [iter(stream) for stream in streams]
        for _ in range(min(steps, len(full) - len(seen))):
            shares = [next(item)["row_id"].tolist() for item in reading]
            seen.append([row for share in shares for row in share])
        (state,) = {json.dumps(stream.state_dict()): stream.state_dict() for stream in streams}.values()
    assert seen == full
    assert all(next(item, None) is None for item in reading)


@pytest.mark.parametrize("workers", WORKERS)
def test_a_loaded_position_holds_for_one_pass_and_its_epoch(workers):
    stream = part().torch(32, epoch=2)
    stream.load_state_dict(stream.state_at(7))
    stream.set_epoch(2)
    reading = loader(stream, workers)
    assert ids(reading) == truth(epoch=2)[7:]
    assert ids(reading) == truth(epoch=2)
    stream.set_epoch(2)
    assert ids(reading) == truth(epoch=2), "a whole epoch again, not what was left of it once"
    stream.load_state_dict(stream.state_at(7))
    stream.set_epoch(3)
    assert ids(reading) == truth(epoch=3)


def test_what_workers_have_read_is_never_guessed():
    stream = part().torch(32)
    accepted = iter(loader(stream, 3))
    first = [next(accepted)["row_id"].tolist() for _ in range(4)]
    with pytest.raises(FarshiftError, match=r"use state_at\(count\)"):
        stream.state_dict()
    resumed = part().torch(32)
    resumed.load_state_dict(stream.state_at(4))
    assert first + ids(loader(resumed, 1)) == truth()


@pytest.mark.parametrize(("workers", "stops"), [(0, [0, 1, 7, 11]), (2, [1, 11]), (3, [7])])
def test_stateful_loaders_resume_where_they_were_saved(workers, stops):
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    for stop in stops:
        saved = stateful(part().torch(32), batch_size=None, num_workers=workers)
        before, reading = [], iter(saved)
        for _ in range(stop):
            before.append(next(reading)["row_id"].tolist())
        state = saved.state_dict()
        resumed = stateful(part().torch(32), batch_size=None, num_workers=workers)
        resumed.load_state_dict(state)
        assert before + ids(resumed) == truth(), stop


@pytest.mark.parametrize("workers", [0, 2])
def test_stateful_loaders_saved_at_an_epochs_end_go_on_with_the_next_whole_epoch(workers):
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    saved = stateful(part().torch(32), batch_size=None, num_workers=workers)
    assert ids(saved) == truth()
    stream = part().torch(32)
    resumed = stateful(stream, batch_size=None, num_workers=workers)
    resumed.load_state_dict(saved.state_dict())
    stream.set_epoch(1)
    assert ids(resumed) == truth(epoch=1)
    stream.set_epoch(2)
    assert ids(resumed) == truth(epoch=2)


def test_states_of_other_streams_are_refused():
    state = part().torch(32).state_dict()
    others = {
        "batch_size 32, but this stream has 64": part().torch(64),
        "seed 0, but this stream has 1": part().torch(32, seed=1),
        "rows .* but this stream has": part(329).torch(32),
        r"part modadd97/xi35@1 train, but this stream has scan/length@1 train": load("scan/length").torch(32),
    }
    for message, other in others.items():
        with pytest.raises(FarshiftError, match=message):
            other.load_state_dict(state)
    with pytest.raises(FarshiftError, match="invalid state of a stream: missing batch_size, epoch, part"):
        part().torch(32).load_state_dict({})
    with pytest.raises(FarshiftError, match="state of only DataLoader worker 1 of 3"):
        part().torch(32).load_state_dict(state | {"reader": [1, 3]})
    with pytest.raises(FarshiftError, match="position 12 is outside the epoch, which has 11 batches"):
        part().torch(32).state_at(12)


def test_wrong_arguments_are_refused_before_a_worker_starts(monkeypatch):
    with pytest.raises(UnknownName, match="no column named 'c'"):
        part().torch(32, columns=["c"])
    with pytest.raises(FarshiftError, match="rank and world go together"):
        part().torch(32, rank=1)
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(FarshiftError, match="batch_size 32 .* is not divisible by 3 ranks"):
        part().torch(32)


RANK = """
import json, sys
import numpy as np, torch.distributed as dist
from farshift.loaders.split import load
from torch.utils.data import DataLoader
dist.init_process_group("gloo")
stream = load("modadd97/xi35", part="train").select(np.arange(330)).torch(32)
reading, taken = iter(stream), []
for _ in range(5):
    taken.append(next(reading)["row_id"].tolist())
state = stream.state_dict()
stream.load_state_dict(state)
for batch, _ in zip(DataLoader(stream, batch_size=None, num_workers=1), range(2)):
    taken.append(batch["row_id"].tolist())
everything = [None] * dist.get_world_size()
dist.all_gather_object(everything, [taken, stream.state_at(7)])
if dist.get_rank() == 0:
    json.dump(everything, open(sys.argv[1], "w"))
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_two_real_ranks_save_and_one_process_resumes(tmp_path):
    script, out = tmp_path / "rank.py", tmp_path / "out.json"
    script.write_text(RANK)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script, out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (first, state), (second, other_state) = json.loads(out.read_text())
    assert state == other_state
    resumed = part().torch(32)
    resumed.load_state_dict(state)
    shares = [item + other for item, other in zip(first, second, strict=True)]
    assert [len(item) for item in first] == [16] * 7
    assert shares + ids(resumed) == truth()


@pytest.mark.parametrize("name", ["modadd97/xi35", "prefix_sums/32_to_64", "scan/length"])
def test_torchs_own_loader_draws_rows_of_a_part_by_position(name):
    part = load(name, "train").select(np.arange(100))
    loader = DataLoader(part, batch_size=7, shuffle=True, generator=torch.Generator().manual_seed(0))
    batch = next(iter(loader))
    assert set(batch) == set(part.columns)
    assert batch["row_id"].dtype == torch.uint64
    by_id = {row["row_id"]: row for row in part[:]}
    for position, row_id in enumerate(batch["row_id"].tolist()):
        drawn = {name: column[position] for name, column in batch.items()}
        assert {name: x.tolist() if isinstance(x, torch.Tensor) else x for name, x in drawn.items()} == by_id[row_id]
