"""Checkpoints of a replica stack under training: one file, replaced atomically, read without unpickling.

An .npz of plain arrays and one JSON text that describes them. What is not in it (initial weights, the order of the
rows, the noise) is a pure function of the replicas' names and the step, so training resumes exactly.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...core.documents import parse_json
from ...core.errors import ModelError
from ...core.files import write_atomically
from .replica_stack import ReplicaStack
from .trainer import Training

FORMAT = 1
ADVICE = "choose another --out"


def save_checkpoint(training: Training, path: Path, identity: str) -> None:
    """Write the state of `training` to `path`. `identity` identifies the training: see `resume_training`."""
    arrays: dict[str, Any] = {}
    outcome, validation = training.outcome, training.validation
    _store_stack(arrays, "cohort", training.stack)
    for name, optimiser_step in training.optimiser_steps.items():
        state = optimiser_step.optimiser.state()
        arrays |= {f"descent/{name}/{key}": _to_array(value) for key, value in state.items()}
    arrays |= {"losses": _to_array(training.losses), "broken": _to_array(training.broken)}
    if training.data is not training.initial_data:
        arrays |= {"data/weight": _to_array(training.data.weight), "data/target": _to_array(training.data.target)}
    for index, stack in enumerate(outcome.ended):
        _store_stack(arrays, f"ended/{index}", stack)
    for index, (_, stack) in enumerate(outcome.candidates):
        _store_stack(arrays, f"candidate/{index}", stack)
    for index, best_stack in enumerate(validation.best_states if validation else []):
        if best_stack is not None:
            _store_stack(arrays, f"best/{index}", best_stack)
    card = {
        "format": FORMAT,
        "identity": identity,
        "total": training.total,
        "stage": training.stage,
        "in_stage": training.in_stage,
        "finished": training.finished,
        "seconds": training.seconds,
        "losses": _to_string_keys(outcome.losses),
        "steps": _to_string_keys(outcome.steps),
        "failed": _to_string_keys(outcome.failed),
        "ended": len(outcome.ended),
        "candidates": [name for name, _ in outcome.candidates],
        "validation": None
        if validation is None
        else {"least": validation.least, "waited": validation.waited, "looked": validation.looked},
    }
    arrays["card"] = np.frombuffer(json.dumps(card).encode(), np.uint8)
    content = io.BytesIO()
    np.savez(content, **arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content.getvalue(), ADVICE)


def resume_training(training: Training, path: Path, identity: str) -> bool:
    """Set `training`, which has not begun, to the state in `path`; False if there is no such file.

    Raises `ModelError` if the file cannot be read, or is of another format or another training."""
    if not path.is_file():
        return False
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        card = parse_json(arrays.pop("card").tobytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ModelError(f"{path} cannot be read as a checkpoint: remove it to train from the start") from error
    if card.get("format") != FORMAT or card.get("identity") != identity:
        what = f"format {card.get('format')}, not {FORMAT}" if card.get("format") != FORMAT else "another training"
        raise ModelError(
            f"{path} is a checkpoint of {what} (another version, or other settings): remove it to train from the start"
        )
    by_stage = _make_stage_lookup(training)
    training.total, training.stage, training.in_stage = card["total"], card["stage"], card["in_stage"]
    training.finished, training.seconds_before = card["finished"], card["seconds"]
    outcome = training.outcome
    outcome.losses, outcome.steps, outcome.failed = (
        _to_integer_keys(card[name]) for name in ("losses", "steps", "failed")
    )
    template = by_stage(training.total)
    outcome.ended = [_restore_stack(template, arrays, f"ended/{index}") for index in range(card["ended"])]
    outcome.candidates = [
        (name, _restore_stack(by_stage(int(name.removeprefix("step-"))), arrays, f"candidate/{index}"))
        for index, name in enumerate(card["candidates"])
    ]
    device = template.keys.device
    training.stack = _restore_stack(template, arrays, "cohort")
    data = training.initial_data.picked(training.stack.number)
    if "data/weight" in arrays:
        data = data.changed(*(torch.from_numpy(arrays[f"data/{name}"]).to(device) for name in ("weight", "target")))
    if len(training.stack) == 0:
        return True  # every replica has been dropped: nothing is left to train
    training.rebuild(data)
    training.losses, training.broken = (torch.from_numpy(arrays[name]).to(device) for name in ("losses", "broken"))
    for name, optimiser_step in training.optimiser_steps.items():
        prefix = f"descent/{name}/"
        state = {key.removeprefix(prefix): _from_array(arrays[key], device) for key in arrays if key.startswith(prefix)}
        optimiser_step.optimiser.load(state)
    if training.validation is not None and card["validation"] is not None:
        validation = training.validation
        validation.least, validation.waited = card["validation"]["least"], card["validation"]["waited"]
        validation.looked = card["validation"]["looked"]
        for index in range(len(validation.best_states)):
            if any(name.startswith(f"best/{index}/") for name in arrays):
                validation.best_states[index] = _restore_stack(template, arrays, f"best/{index}")
    return True


def _store_stack(arrays: dict[str, Any], prefix: str, stack: nn.Module) -> None:
    arrays |= {f"{prefix}/{name}": _to_array(value) for name, value in stack.state_dict().items()}


def _restore_stack(template: ReplicaStack, arrays: Mapping[str, Any], prefix: str) -> ReplicaStack:
    """The replica stack that was saved under `prefix`, made from the one that training began with."""
    state = {
        name.removeprefix(f"{prefix}/"): torch.from_numpy(value)
        for name, value in arrays.items()
        if name.startswith(f"{prefix}/")
    }
    stack = template.only(state["number"].tolist())
    stack.load_state_dict(state)
    stack.ready()
    stack.network.eval()
    return stack


def _make_stage_lookup(training: Training) -> Callable[[int], ReplicaStack]:
    """Look up the replica stack that training began with, with the network's shapes after a number of steps: in a later
    stage they may differ."""
    begun, ends = training.stack, list(accumulate(training.stages))[:-1]
    stacks = {0: begun}

    def after(total: int) -> ReplicaStack:
        stage = sum(total >= end for end in ends) if begun.algorithm.grows else 0
        if stage not in stacks:
            stacks[stage] = begun.only(range(len(begun)))
            stacks[stage].network = stacks[stage].fresh(stage)
        return stacks[stage]

    return after


def _to_array(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)


def _from_array(array: Any, device: torch.device) -> Any:
    return array.item() if array.ndim == 0 else torch.from_numpy(array).to(device)


def _to_string_keys(values: Mapping[int, Any]) -> dict[str, Any]:
    return {str(number): value for number, value in values.items()}


def _to_integer_keys(values: Mapping[str, Any]) -> dict[int, Any]:
    return {int(number): value for number, value in values.items()}
