"""A short trial of a planned run: a few real steps, decodings and predictions on this machine, with rows spread over
the training part.

Only features of a frozen encoder are stored, and the run uses them. The timed network is the run's own, with as many
replicas at once; it is untrained, so the texts that it generates have the maximum length.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...benchmarks.harness.training import TrainingSet
from ...benchmarks.model import Columns
from ...benchmarks.model_inputs.load import load_model_inputs
from ...benchmarks.model_inputs.rows import ModelInputs, ModelRows
from ...core.files import get_cache_root
from ...loaders.batching.images import decode_images
from ...loaders.batching.pixels import is_cached
from ..compatibility import list_required_data
from ..encoding.frozen import FrozenColumns
from ..encoding.images import is_encoded
from ..encoding.log_mel import is_audio_task
from ..encoding.token_ids import choose_encoding
from ..encoding.token_rows import TokenRows
from ..recipe import resolve_settings
from ..replicas.stacked import count_parameters
from ..training.predict import predict_batch
from ..training.replica_group import ReplicaGroup
from ..training.stack_size import StackQueue
from ..training.trained_group import TrainedGroup
from ..training.trainer import Training
from ..training.training_rows import FitInput, Member, extract_columns
from .plan import Plan

ROWS = 8192
"""The most rows that a probe trains on."""

FILES = 256
"""The same for rows whose files have to be decoded."""

PREDICTION_ROWS = 64
"""The rows that it predicts."""

_SECONDS = 4.0
"""Seconds after which no further step is timed."""

_STEPS = 6
"""The most steps taken; the first is not timed."""


@dataclass
class Probe:
    """The results of a trial. Seconds are wall clock, bytes are of the trial's own replica stack."""

    rows: int
    """Rows in the trial, out of `of`."""
    of: int
    replicas: int = 0
    """Replicas trained at once."""
    drawn: int = 0
    """Rows in one replica's step."""
    parameters: int = 0
    """Parameters of one replica."""
    steps: int = 0
    """Steps that were timed; 0: none was taken."""
    step_seconds: float = 0.0
    """The median, of all its replicas together."""
    step_bytes: int | None = None
    """Memory of a step beyond the rows and the network; None if this system does not report it."""
    row_bytes: float = 0.0
    """Bytes of one encoded training row on the device."""
    answer_seconds: float = 0.0
    """Seconds to predict one row, by all its replicas together."""
    share: float = 1.0
    """The share of a process's replicas that this trial represents."""
    images_per_second: float | None = None
    audio_files_per_second: float | None = None
    """Decoded and converted to what a network reads."""
    features_per_second: float | None = None
    images: dict[str, bool] = field(default_factory=dict)
    """Whether a part's decoded images are in the cache, for each part that has images."""
    side: int = 0
    width: int = 0
    """Width of the features of a frozen encoder."""


def run_probe(plan: Plan, members: Sequence[Member]) -> Probe:
    """Measure the cost of a plan's `members`, which one process trains. Raises the errors of the training."""
    model_inputs = load_model_inputs(plan.benchmark)
    rows = TrainingSet(plan.benchmark, model_inputs)
    training_table = rows.train()
    files = [name for name in plan.benchmark.task.inputs if is_encoded(training_table.columns[name])]
    count = min(len(training_table), FILES if files else ROWS)
    result = Probe(count, len(training_table))
    some = _select_evenly(training_table, count)
    opened = rows.opened(list_required_data(plan.recipe).__contains__)
    val = rows.val()
    given = {
        name: _select_evenly(table, PREDICTION_ROWS)
        for name, table in (("val", val), ("ood_val", opened.get("ood_val")))
        if table
    }
    unlabelled = opened.get("unlabelled")
    if unlabelled is not None:
        unlabelled = {name: column[:count] for name, column in unlabelled.items()}
    prediction_batch = model_inputs.part(plan.benchmark.predicted_parts[0]).batch(slice(0, PREDICTION_ROWS))
    recipe = plan.recipe
    if files and not recipe.encoder and is_audio_task(plan.benchmark.task, training_table.columns):
        start = time.perf_counter()
        choose_encoding(plan.benchmark.task, some.columns, _resolve_values(plan, members)).encode(some.columns)
        result.audio_files_per_second = count / (time.perf_counter() - start)
    elif files and not recipe.encoder:
        values = _resolve_values(plan, members)
        result.side, by = values["side"], values["decoder"]
        result.images = _find_cached_parts(plan, model_inputs, files[0], result.side, by)
        start = time.perf_counter()
        some = _decode_rows(some, files, result.side, by)
        result.images_per_second = count * len(files) / (time.perf_counter() - start)
        given = {name: _decode_rows(table, files, result.side, by) for name, table in given.items()}
        prediction_batch |= _decode_columns(prediction_batch, files, result.side, by)
        if unlabelled is not None:
            unlabelled |= _decode_columns(unlabelled, files, result.side, by)
    if recipe.encoder:
        _measure_features(result, recipe.encoder, plan, some)
    if recipe.estimator:
        return result
    group = ReplicaGroup(recipe, plan.benchmark.task, members, plan.benchmark.name, stack=plan.stack)
    trained = TrainedGroup(recipe, plan.benchmark.task, plan.benchmark.name, members)
    training_rows = FitInput(some, given.get("val"), given.get("ood_val"), unlabelled)
    encoded = next(group.encode(trained, training_rows, plan.budget), None)
    if encoded is None:
        trained.remarks(members[0])  # raises the error of its rows
        return result
    for stacked in (queue := StackQueue(encoded.members, group.count_stacked(encoded))):
        with queue.attempt(stacked):
            training = group.make_training(encoded, stacked)
            _measure_steps(result, training)
            training.stack.network.eval()
            start = time.perf_counter()
            predict_batch(encoded.coding, training.stack, trained.read(prediction_batch))
            result.answer_seconds = (time.perf_counter() - start) / len(next(iter(prediction_batch.values())))
            break
    return result


def _measure_features(result: Probe, encoder: str, plan: Plan, rows: ModelRows) -> None:
    """Measure how fast a frozen encoder reads rows that it has not read before."""
    given, *_ = extract_columns(rows)
    frozen = FrozenColumns(encoder, plan.benchmark.task, given, plan.budget.device)
    before = {path for path in (get_cache_root() / "features").glob("*/*.arrow")}
    start = time.perf_counter()
    read = frozen.columns(given)
    seconds = time.perf_counter() - start
    result.width = sum(column.shape[1] for name, column in read.items() if column is not given[name])
    if {path for path in (get_cache_root() / "features").glob("*/*.arrow")} != before:
        result.features_per_second = len(rows) / seconds


def _resolve_values(plan: Plan, members: Sequence[Member]) -> dict[str, Any]:
    if plan.recipe.estimator:
        from ..encoding.encoding import SETTINGS

        return dict(SETTINGS)
    return resolve_settings(plan.recipe, plan.benchmark.name, members[0].settings)


def _select_evenly(rows: ModelRows, count: int) -> ModelRows:
    """At most `count` of the rows, evenly spaced."""
    return rows.select(np.unique(np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(np.int64)))


def _decode_rows(rows: ModelRows, files: Sequence[str], side: int, by: str) -> ModelRows:
    return rows.replaced(_decode_columns(rows.columns, files, side, by))


def _decode_columns(columns: Columns, files: Sequence[str], side: int, by: str) -> dict[str, NDArray[Any]]:
    return {name: decode_images(columns[name], side, by) for name in files}


def _find_cached_parts(plan: Plan, model_inputs: ModelInputs, name: str, side: int, by: str) -> dict[str, bool]:
    """For each part that is trained on, whether its decoded images are in the cache."""
    return {
        part: is_cached(model_inputs.part(part).columns[name], side, by)
        for part in ("train", "id_val")
        if model_inputs.has_part(part)
    }


def _measure_steps(result: Probe, training: Training) -> None:
    """Measure a few steps of a training."""
    device, data = training.stack.keys.device, training.data
    result.replicas, result.drawn = len(training.stack), training.sampler.drawn
    result.parameters = count_parameters(training.stack.network)
    tensors = [x for x in (*data.inputs, data.target, data.weight) if isinstance(x, torch.Tensor | TokenRows)]
    result.row_bytes = sum(x.nbytes for x in tensors) / max(1, len(data))
    seconds: list[float] = []

    def steps() -> None:
        begun = time.perf_counter()
        for step in range(min(_STEPS, training.steps)):
            start = time.perf_counter()
            training.step()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if step or training.steps == 1:
                seconds.append(time.perf_counter() - start)
            if seconds and time.perf_counter() - begun > _SECONDS:
                break

    result.step_bytes = _measure_peak_bytes(steps, device)
    result.steps, result.step_seconds = len(seconds), float(np.median(seconds))
    if not training.stack.hyperparameters["batch_size"]:  # a full batch grows with the rows
        result.step_seconds *= result.of / result.rows
        result.drawn = result.of


def _measure_peak_bytes(what: Callable[[], None], device: torch.device) -> int | None:
    """The peak memory in bytes above that at the start; None if the system does not record it."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        allocated = torch.cuda.memory_allocated(device)
        what()
        return torch.cuda.max_memory_allocated(device) - allocated
    before, marked = _read_process_status("VmRSS"), _reset_peak_mark()
    what()
    peak = _read_process_status("VmHWM")
    return max(0, peak - before) if marked and before is not None and peak is not None else None


def _reset_peak_mark() -> bool:
    """Reset the peak memory that Linux records for this process; False if it cannot."""
    try:
        Path("/proc/self/clear_refs").write_text("5", "ascii")
    except OSError:
        return False
    return True


def _read_process_status(name: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text("ascii", "replace").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
    except (OSError, StopIteration):
        return None
