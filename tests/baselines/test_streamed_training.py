"""A training that draws its pictures from a stream is the training on the same rows in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from encoded_files import picture
from farshift import FarshiftError
from farshift.baselines.training.replica_group import ReplicaGroup
from farshift.baselines.training.trained_group import TrainedGroup
from farshift.baselines.training.trainer import Training
from farshift.baselines.training.training_rows import FitInput, Member
from farshift.benchmarks.model import Budget, Task
from farshift.benchmarks.model_inputs.rows import ModelRows
from farshift.core.errors import BadData
from farshift.loaders.part import Part
from farshift.loaders.stream.part import Store, StreamedPart
from farshift.loaders.stream.split import find_streamed_inputs
from farshift.splits.rows import compute_first_ids, compute_row_digests, get_digest_prefixes
from farshift.splits.schema import Field, Schema

from .killed_groups import killed_before
from .toys import recipe

COUNT, STEPS = 30, 24
LOOKED_AT = 16
"""Files whose heads say whether a column holds sounds."""

MEMBERS = [Member(0, {}), Member(1, {"lr": 0.02})]
TASK = Task("classification", ("image",), "kind", classes=3)
SCHEMA = Schema((Field("image", "image", "input"), Field("kind", "int64", "label"), Field("note", "string", "meta")))


@dataclass(frozen=True)
class Held(Store):
    """A store of rows in memory, which counts those that are read."""

    table: pa.Table
    seen: list[int] = field(default_factory=list)

    least_block = 1

    def describe_location(self, row: int) -> str:
        return f"held row {row}"

    def read(self, rows: np.ndarray, fields: Sequence[Field], cancel: Event) -> pa.Table:
        self.seen.extend(rows.tolist())
        return self.table.select([item.name for item in fields]).take(rows)


def pictures() -> tuple[StreamedPart, ModelRows]:
    """JPEGs in a store, and the same rows in memory, in the order of their ids."""
    table = pa.table(
        {
            "image": pa.array([picture(number) for number in range(COUNT)], pa.binary()),
            "kind": np.arange(COUNT) % 3,
            "note": ["none"] * COUNT,
        }
    )
    ids, checks = compute_first_ids(table, SCHEMA), get_digest_prefixes(compute_row_digests(table, SCHEMA))
    order = np.argsort(ids)
    output = pa.table({"row_id": ids[order], "check": checks[order]})
    known = Part("made/jpegs@1", "0" * 64, "train", SCHEMA, "kind", output, np.arange(COUNT), {})
    held = Held((), np.full(COUNT, 400), np.zeros(COUNT, np.int64), table)
    part = StreamedPart.of(known, held, order, 1 << 20)
    files = np.empty(COUNT, object)
    files[:] = table["image"].to_pylist()
    columns = {"image": files[order], "kind": table["kind"].to_numpy()[order], "weight": np.ones(COUNT, np.int64)}
    return part, ModelRows(columns, ids[order])


def make_streamed_rows(part: StreamedPart, task: Task) -> ModelRows:
    """A streamed part as training rows: labels are read here, inputs when they are drawn."""
    columns: dict[str, Any] = dict(find_streamed_inputs(part, task.inputs))
    columns[task.label] = np.concatenate([batch[task.label] for batch in part.batches(4096, columns=[task.label])])
    columns["weight"] = np.ones(len(part), np.int64)
    return ModelRows(columns, part.row_ids, part.name, part.identity)


def fitted(rows: ModelRows, task: Task, kept: Path | None = None, steps: int = STEPS, **settings: Any) -> TrainedGroup:
    chosen = {"batch_size": 8, "lr": 0.01, "width": 8, "side": 8} | settings
    group = ReplicaGroup(recipe("mlp", steps, **chosen), task, MEMBERS, "toy/toy", kept)
    return group.fit(FitInput(rows, None), Budget("quick"))


@pytest.fixture
def losses(monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """Of every replica after every step."""
    seen: list[list[float]] = []
    plain = Training.step

    def step(self: Training) -> None:
        plain(self)
        seen.append(self.losses.tolist())

    monkeypatch.setattr(Training, "step", step)
    return seen


@pytest.mark.parametrize("limit", ["", "1kB"], ids=["decoded into the cache", "decoded on the fly"])
@pytest.mark.parametrize("feed", ["resident", "streamed"])
def test_encoded_pictures_of_a_stream_have_the_losses_of_those_in_memory(limit, feed, losses, cache, monkeypatch):
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", limit)
    part, here = pictures()
    fitted(here, TASK, feed="resident")
    before = list(losses)
    losses.clear()
    fitted(make_streamed_rows(part, TASK), TASK, feed=feed)
    assert len(before) == len(losses) == STEPS
    np.testing.assert_allclose(losses, before, rtol=0, atol=1e-6)
    locked = part.store
    assert isinstance(locked, Held)
    if limit and feed == "streamed":
        assert len(locked.seen) > STEPS * 8, "rows are read as they are drawn"
    elif not limit:
        assert len(locked.seen) == COUNT + LOOKED_AT + COUNT, "labels once; is it sound?; pictures once, into the cache"


def test_a_training_from_a_stream_that_is_killed_goes_on_to_the_same_bits(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", "1kB")
    part, here = pictures()
    rows = make_streamed_rows(part, TASK)
    requested = {"image": here.columns["image"]}

    def outcome(kept: Path | None) -> list[Any]:
        fit = fitted(rows, TASK, kept, steps=12, feed="streamed")
        return [fit.predict(member, requested).scores.tolist() for member in MEMBERS]

    clean = outcome(None)
    code = killed_before(Training, "step", 7, lambda: fitted(rows, TASK, tmp_path, steps=12, feed="streamed"))
    assert code == -9
    assert outcome(tmp_path) == clean


def test_a_row_that_is_not_the_manifest_s_stops_the_training_and_is_named(cache, monkeypatch):
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", "1kB")
    part, _ = pictures()
    rows = make_streamed_rows(part, TASK)
    column = [*part.store.table["image"].to_pylist()[:-1], picture(99)]
    other = part.store.table.set_column(0, "image", pa.array(column, pa.binary()))
    object.__setattr__(part.store, "table", other)
    with pytest.raises(BadData, match=r"^row [0-9a-f]{16} differs from the manifest \(held row 29; "):
        fitted(rows, TASK, feed="streamed")


def test_a_text_is_no_input_that_is_streamed(tmp_path):
    part, _ = pictures()
    with pytest.raises(FarshiftError, match="the column 'note' is string: only images and audio files can be streamed"):
        make_streamed_rows(part, replace(TASK, inputs=("note",)))
