"""Pictures that are streamed to the device, from a file or from elsewhere, train the same as those that lie on it."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from encoded_files import picture
from farshift.baselines.encoding.encoding import RowEncoding
from farshift.baselines.encoding.stored_rows import PixelRows
from farshift.baselines.running.listing import list_algorithms
from farshift.baselines.training import feed
from farshift.baselines.training.replica_group import ReplicaGroup
from farshift.baselines.training.sampler import Data, Sampler
from farshift.baselines.training.trained_group import TrainedGroup
from farshift.baselines.training.trainer import Training
from farshift.baselines.training.training_rows import FitInput, Member
from farshift.benchmarks.model import Budget, Task
from farshift.benchmarks.model_inputs.load import StreamedFiles
from farshift.benchmarks.model_inputs.rows import ModelRows
from farshift.core.errors import BadData, ModelError
from farshift.core.progress import report_to
from farshift.loaders.batching.pixels import ArrayPixels, EncodedPixels
from farshift.loaders.decoders import load_decoder
from farshift.loaders.part import Part
from farshift.loaders.stream.part import Store, StreamedPart
from farshift.splits.rows import compute_first_ids, compute_row_digests, get_digest_prefixes
from farshift.splits.schema import Field, Schema
from support import Heard

from .killed_groups import killed_before
from .toys import Rows, recipe

TASK = Task("classification", ("image",), "kind", classes=3)
STEPS = 24
SEEDS = [Member(0, {}), Member(1, {"lr": 0.02})]
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "rows of each environment": {"algorithm": "group_dro", "batch_size": 4},
    "one environment held out of each step": {"algorithm": "mldg", "batch_size": 4},
    "two stages, rows weighted anew": {"algorithm": "jtt", "first_percent": 50},
    "an order of its own": {"algorithm": "curriculum", "difficulty": "self-taught"},
    "shifted rows": {"algorithm": "dann", "batch_size": 4},
    "a head fitted to validation rows": {"algorithm": "dfr"},
    "moments of all rows": {"algorithm": "swa"},
    "sharp steps": {"sharpness": 0.1},
    "early stopping": {"check_every": 5, "patience": 2},
    "full batches in chunks": {"batch_size": 0, "chunk": 16},
    "batches sorted by length": {"pool": 3},
}
KNOWN = {record["name"]: record for record in list_algorithms()}


def images(count: int, seed: int = 0, **more: Any) -> Rows:
    draw = np.random.default_rng(seed)
    kind = np.arange(count) % 3
    pixels = (draw.integers(0, 120, (count, 6, 6, 3)) + 60 * (kind[:, None, None, None] == np.arange(3))).astype(
        np.uint8
    )
    return Rows(image=pixels, kind=kind, group=np.array([f"g{position // 3 % 3}" for position in range(count)]), **more)


def given(which: int = 45) -> FitInput:
    train, val, ood = images(which), images(18, 1), images(18, 2)
    return FitInput(train, val, ood, images(20, 3).only("image"))


def fitted(
    how: str, members: list[Member] = SEEDS, kept: Path | None = None, steps: int = STEPS, **settings: Any
) -> TrainedGroup:
    chosen = {"batch_size": 8, "lr": 0.01, "width": 12, "feed": how} | settings
    built = recipe("mlp", steps, chosen.pop("algorithm", "erm"), **chosen)
    rows = replace(given(), unlabelled=None) if "unlabelled" not in KNOWN[built.algorithm or ""]["touches"] else given()
    return ReplicaGroup(built, TASK, members, "toy/toy", kept).fit(rows, Budget("quick"))


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


def outcome(fit: TrainedGroup, members: list[Member] = SEEDS) -> list[Any]:
    requested = images(30, 4).only("image")
    return [fit.replica(member).predict(requested).scores for member in members]


@pytest.mark.parametrize("case", CASES)
def test_both_feeds_have_the_same_losses_and_lead_to_the_same_replicas(case: str, losses: list[list[float]]) -> None:
    resident = outcome(fitted("resident", **CASES[case]))
    before = list(losses)
    losses.clear()
    streamed = outcome(fitted("streamed", **CASES[case]))
    assert len(before) == len(losses) > 0
    for item, other in zip(before, losses, strict=True):
        np.testing.assert_allclose(other, item, rtol=0, atol=1e-6)
    for item, other in zip(resident, streamed, strict=True):
        np.testing.assert_allclose(other, item, rtol=0, atol=1e-6)


def test_what_was_begun_with_one_feed_goes_on_with_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` may choose otherwise after a kill: another machine, other free memory."""
    clean = outcome(fitted("auto", steps=12))
    monkeypatch.setattr(feed, "get_free_memory", lambda device: 0)
    code = killed_before(Training, "step", 7, lambda: fitted("auto", kept=tmp_path, steps=12))
    monkeypatch.undo()
    again = outcome(fitted("auto", kept=tmp_path, steps=12))
    assert code == -9
    for item, other in zip(clean, again, strict=True):
        np.testing.assert_allclose(item, other, rtol=0, atol=1e-6)


def data() -> tuple[RowEncoding, Data]:
    rows = images(30)
    coding = RowEncoding(TASK, rows.numpy())
    return coding, Data.of(coding.encode(rows.numpy()), torch.ones(30, dtype=torch.float64))


def test_the_feed_is_chosen_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    _, rows = data()
    size = 30 * 6 * 6 * 3 * 4
    monkeypatch.setattr(feed, "get_free_memory", lambda device: 4 * size)
    assert isinstance(feed.move_to_device(rows, "auto", "cpu").inputs[1], torch.Tensor)
    monkeypatch.setattr(feed, "get_free_memory", lambda device: 4 * size - 4)
    with report_to(output := Heard()):
        assert isinstance(feed.move_to_device(rows, "auto", "cpu").inputs[1], PixelRows)
    assert output.lines == [
        "the images take 13.0 kB as float32, more than 13.0 kB: they stay uint8 and are streamed to the device "
        "(feed = 'streamed')"
    ]


def test_resident_rows_are_the_encoding_s_own() -> None:
    coding, rows = data()
    full = feed.move_to_device(rows, "resident", "cpu")
    assert torch.equal(full.inputs[1], coding.inputs(images(30).numpy())[1])


def test_streamed_rows_are_read_as_those_of_a_tensor() -> None:
    _, rows = data()
    lazy, full = rows.inputs[1], feed.move_to_device(rows, "resident", "cpu").inputs[1]
    places = torch.tensor([[3, 3], [29, 0]])
    assert len(lazy) == len(full)
    assert lazy.shape == full.shape
    for read in (
        lambda x: x[2:9],
        lambda x: x[1::7],
        lambda x: x[places],
        lambda x: x[torch.arange(30) % 2 == 0],
        lambda x: x.index_select(0, places[1]),
        lambda x: torch.cat(list(torch.split(x, 7))),
    ):
        assert torch.equal(read(lazy), read(full))


def test_pictures_that_are_decoded_when_they_are_read_train_the_same() -> None:
    files = [picture(number, side=12) for number in range(20)]
    pixels = EncodedPixels(files, 6, load_decoder(), "key")
    locked = ArrayPixels(np.concatenate([pixels.take(np.arange(20))]))
    rows = torch.tensor([[4, 19, 4]])
    lazy = PixelRows(pixels, 255.0)
    assert torch.equal(lazy.at(rows), PixelRows(locked, 255.0).at(rows))


def test_a_full_batch_of_streamed_rows_is_refused_in_one_line() -> None:
    fit = fitted("streamed", batch_size=0)
    with pytest.raises(ModelError, match="a full batch has all rows on the device, and these are streamed"):
        fit.replica(SEEDS[0])


def test_streaming_of_what_is_no_picture_is_refused() -> None:
    rows = Rows(a=np.arange(6), b=np.arange(6), kind=np.arange(6) % 3)
    group = ReplicaGroup(recipe("mlp", 2, feed="streamed"), replace(TASK, inputs=("a", "b")), SEEDS, "toy/toy")
    with pytest.raises(ModelError, match="only images are streamed"):
        group.fit(FitInput(rows, None), Budget("quick")).replica(SEEDS[0])


def test_an_operation_that_needs_all_rows_says_what_to_do() -> None:
    _, rows = data()
    with pytest.raises(ModelError, match=r"reads all training rows at once \(by expand\): set feed = 'resident'"):
        rows.inputs[1].expand(3)


def test_of_a_mapped_file_no_more_than_the_steps_rows_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """600 pictures of 64 x 64 are 29 MB as float32; the arrays made while 12 steps are trained stay below 3 MB."""
    import tracemalloc

    path = tmp_path / "pixels.npy"
    np.save(path, np.random.default_rng(0).integers(0, 256, (600, 64, 64, 3), dtype=np.uint8))
    mapped = np.load(path, mmap_mode="r")
    sizes: list[int] = []
    gathered = PixelRows._scaled

    def scaled(self: PixelRows, pixels: torch.Tensor) -> torch.Tensor:
        result = gathered(self, pixels)
        sizes.append(result.nbytes)
        return result

    monkeypatch.setattr(PixelRows, "_scaled", scaled)
    coding = RowEncoding(TASK, {"image": mapped, "kind": np.arange(600) % 3})
    pixels = PixelRows(ArrayPixels(mapped), 255.0)
    rows = Data((torch.zeros(600, 0, dtype=torch.int64), pixels), torch.arange(600)[None] % 3, torch.ones(600), torch.ones(1, 600))  # type: ignore[arg-type]  # fmt: skip
    sampler = Sampler(rows, torch.tensor([1]), {"batch_size": 8, "pool": 1, "chunk": 0}, False)  # type: ignore[arg-type]
    tracemalloc.start()
    for step in range(12):
        sampler.batch(step)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert coding.sizes.shape == (64, 64, 3)
    assert max(sizes) == 8 * 64 * 64 * 3 * 4
    assert peak < 3e6


COUNT, STEPS_STORE = 30, 24
LOOKED_AT = 16
"""Files whose heads say whether a column holds sounds."""

MEMBERS = [Member(0, {}), Member(1, {"lr": 0.02})]
SCHEMA = Schema((Field("image", "image", "input"), Field("kind", "int64", "label"), Field("note", "string", "meta")))


@dataclass(frozen=True)
class Held(Store):
    """A store of rows in memory, which counts those that are read."""

    table: pa.Table
    seen: list[int] = field(default_factory=list)

    least_block = 1

    def describe_location(self, row: int) -> str:
        return f"held row {row}"

    def read(self, rows: np.ndarray, cancel: Event) -> pa.Table:
        self.seen.extend(rows.tolist())
        return self.table.take(rows)


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
    columns: dict[str, Any] = {name: StreamedFiles(part, name) for name in task.inputs}
    columns[task.label] = np.concatenate([batch[task.label] for batch in part.batches(4096, columns=[task.label])])
    columns["weight"] = np.ones(len(part), np.int64)
    return ModelRows(columns, part.row_ids, part.name, part.identity)


def fitted_store(
    rows: ModelRows, task: Task, kept: Path | None = None, steps: int = STEPS_STORE, **settings: Any
) -> TrainedGroup:
    chosen = {"batch_size": 8, "lr": 0.01, "width": 8, "side": 8} | settings
    group = ReplicaGroup(recipe("mlp", steps, **chosen), task, MEMBERS, "toy/toy", kept)
    return group.fit(FitInput(rows, None), Budget("quick"))


@pytest.mark.parametrize("limit", ["", "1kB"], ids=["decoded into the cache", "decoded on the fly"])
@pytest.mark.parametrize("feed", ["resident", "streamed"])
def test_encoded_pictures_of_a_stream_have_the_losses_of_those_in_memory(limit, feed, losses, cache, monkeypatch):
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", limit)
    part, here = pictures()
    fitted_store(here, TASK, feed="resident")
    before = list(losses)
    losses.clear()
    fitted_store(make_streamed_rows(part, TASK), TASK, feed=feed)
    assert len(before) == len(losses) == STEPS_STORE
    np.testing.assert_allclose(losses, before, rtol=0, atol=1e-6)
    locked = part.store
    assert isinstance(locked, Held)
    if limit and feed == "streamed":
        assert len(locked.seen) > STEPS_STORE * 8, "rows are read as they are drawn"
    elif not limit:
        assert len(locked.seen) == COUNT + LOOKED_AT + COUNT, "labels once; is it sound?; pictures once, into the cache"


def test_a_training_from_a_stream_that_is_killed_goes_on_to_the_same_bits(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", "1kB")
    part, here = pictures()
    rows = make_streamed_rows(part, TASK)
    requested = {"image": here.columns["image"]}

    def outcome(kept: Path | None) -> list[Any]:
        fit = fitted_store(rows, TASK, kept, steps=12, feed="streamed")
        return [fit.replica(member).predict(requested).scores.tolist() for member in MEMBERS]

    clean = outcome(None)
    code = killed_before(Training, "step", 7, lambda: fitted_store(rows, TASK, tmp_path, steps=12, feed="streamed"))
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
        fitted_store(rows, TASK, feed="streamed")
