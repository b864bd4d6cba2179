"""Checkpoints of a replica stack under training: one file, replaced atomically, read as tensors and plain values only.

What is not in it (initial weights, the order of the rows, the noise) is a pure function of the replicas' names and the
step, so training resumes exactly.
"""

import io
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

from ...core.errors import ModelError
from ...core.files import OUT_ADVICE, write_atomically
from .replica_stack import ReplicaStack
from .trainer import Training


def save_checkpoint(training: Training, path: Path) -> None:
    """Write the state of `training` to `path`."""
    outcome, validation, data = training.outcome, training.validation, training.data
    state = {
        "total": training.total,
        "stage": training.stage,
        "in_stage": training.in_stage,
        "finished": training.finished,
        "seconds": training.seconds,
        "stack": training.stack.state_dict(),
        "data": None if data is training.initial_data else (data.weight, data.target),
        "optimisers": {name: step.optimiser.state() for name, step in training.optimiser_steps.items()},
        "losses": training.losses,
        "broken": training.broken,
        "outcome": {"losses": outcome.losses, "steps": outcome.steps, "failed": outcome.failed},
        "ended": [stack.state_dict() for stack in outcome.ended],
        "candidates": [(name, stack.state_dict()) for name, stack in outcome.candidates],
        "validation": None
        if validation is None or validation.best is None
        else (validation.least, validation.waited, validation.best.state_dict()),
    }
    content = io.BytesIO()
    torch.save(state, content)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content.getvalue(), OUT_ADVICE)


def resume_training(training: Training, path: Path) -> bool:
    """Set `training`, which has not begun, to the state in `path`; False if there is no such file. `ModelError` if it
    cannot be read."""
    if not path.is_file():
        return False
    try:
        state = torch.load(path, training.stack.keys.device, weights_only=True)
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # a truncated file may raise anything
        raise ModelError(f"{path} cannot be read as a checkpoint: remove it to train from the start") from error
    template_at = _make_stage_lookup(training)
    training.total, training.stage, training.in_stage = state["total"], state["stage"], state["in_stage"]
    training.finished, training.seconds_before = state["finished"], state["seconds"]
    outcome, template = training.outcome, template_at(training.total)
    outcome.losses, outcome.steps, outcome.failed = (state["outcome"][name] for name in ("losses", "steps", "failed"))
    outcome.ended = [_restore_stack(template, saved) for saved in state["ended"]]
    outcome.candidates = [
        (name, _restore_stack(template_at(int(name.removeprefix("step-"))), saved))
        for name, saved in state["candidates"]
    ]
    training.stack = _restore_stack(template, state["stack"])
    if len(training.stack) == 0:
        return True  # every replica has been dropped: nothing is left to train
    data = training.initial_data.picked(training.stack.number)
    training.rebuild(data.changed(*state["data"]) if state["data"] else data)
    training.losses, training.broken = state["losses"], state["broken"]
    for name, optimiser_step in training.optimiser_steps.items():
        optimiser_step.optimiser.load(state["optimisers"][name])
    if training.validation is not None and state["validation"] is not None:
        training.validation.least, training.validation.waited, best = state["validation"]
        training.validation.best = _restore_stack(template, best)
    return True


def _restore_stack(template: ReplicaStack, state: dict[str, Any]) -> ReplicaStack:
    """The replica stack with this state, made from the one that training began with."""
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
