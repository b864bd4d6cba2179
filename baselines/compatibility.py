"""Which tasks a recipe can do, and which data it requires; checked before any training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..core.errors import ModelError
from ..core.plugins import load_module
from .recipe import Recipe, find_named_file, find_plugin_files, read_declaration, read_literal

if TYPE_CHECKING:
    from ..benchmarks.model import Task


def list_required_data(recipe: Recipe) -> tuple[str, ...]:
    """The data that a recipe requires: names of `algorithm.TOUCHABLE`."""
    if recipe.algorithm is None:
        return ("train",)
    data_names: tuple[str, ...] = read_declaration(recipe.algorithm).touches
    stops = recipe.settings.get("check_every") and recipe.settings.get("patience")
    return (*data_names, "id_val") if stops and "id_val" not in data_names else data_names


def check_task(recipe: Recipe, task: Task) -> None:
    """`ModelError` if a recipe cannot do a task."""
    if recipe.estimator:
        sorts = ("classification", "sequence") if recipe.whole_answers else ("classification",)
        if recipe.regressor:
            sorts = ("regression",)
        if task.type not in sorts:
            raise ModelError(f"{recipe.name} is for {' and '.join(sorts)} tasks, and this is a {task.type} task")
        return
    assert recipe.network
    assert recipe.algorithm
    sort = load_module("baselines/networks", recipe.network, "network").TASK
    if not _can_do_task(sort, task):
        raise ModelError(
            f"{recipe.name}: the network {recipe.network} is for {' and '.join(list_tasks(sort))} tasks, "
            f"and this is a {task.type} task{_suggest_alternatives(task)}"
        )
    tasks = read_declaration(recipe.algorithm).tasks
    if task.type not in tasks:
        raise ModelError(
            f"{recipe.name}: the algorithm {recipe.algorithm} is for {' and '.join(tasks)} tasks, "
            f"and this is a {task.type} task"
        )


def list_tasks(sort: str) -> tuple[str, ...]:
    """The tasks of a network, by the `TASK` that its file states. A classification network has one output a class; with
    one output it does regression."""
    return (sort, "regression") if sort == "classification" else (sort,)


def _can_do_task(sort: str, task: Task) -> bool:
    return task.aligned if sort == "aligned" else task.type in list_tasks(sort)


def _suggest_networks(names: list[str]) -> str:
    return f"use --network {' or '.join(names)}" if names else ""


def _suggest_alternatives(task: Task) -> str:
    """The networks that can do a task with any inputs, and those that can do it with images only."""
    names = find_networks_for(task, images=False)
    images = [name for name in find_networks_for(task) if name not in names]
    suggestions = [_suggest_networks(names), *([f"for images {' or '.join(images)}"] if names and images else [])]
    return f": {', and '.join(suggestions)}" if names else ""


def find_networks_for(task: Task, images: bool = True) -> list[str]:
    """The networks that can do a task, sorted; without those that start from pretrained weights or read graphs. images:
    whether its inputs are images, or other arrays of two or three axes."""
    known = {
        name: path
        for name, path in find_plugin_files("networks").items()
        if name != "pretrained" and not _reads(name, "graphs")
    }
    return sorted(
        name
        for name, path in known.items()
        if _can_do_task(read_literal(path, "TASK"), task) and (images or not reads_images(name))
    )


def reads_images(network: str) -> bool:
    """Whether a network reads images only: its file says `READS = "images"`."""
    return _reads(network, "images")


def _reads(network: str, kind: str) -> bool:
    return bool(read_literal(find_named_file("network", "networks", network), "READS", "") == kind)


def check_inputs(recipe: Recipe, benchmark: str, task: Task, images: bool) -> None:
    """`ModelError` if a recipe's network reads images and the inputs of a benchmark are something else (`images` is
    false); it names the networks that can read them."""
    if recipe.network is None or not reads_images(recipe.network) or (images and recipe.encoder is None):
        return
    what = "features of a frozen encoder" if recipe.encoder else "no image (one input of two or three axes)"
    raise ModelError(
        f"{recipe.name}: the network {recipe.network} reads images, and {benchmark} has {what}: "
        f"{_suggest_networks(find_networks_for(task, images=False))}"
    )


def check_available(recipe: Recipe, benchmark: str, available: Mapping[str, Callable[[], bool]]) -> None:
    """`ModelError` if a recipe requires data that are not available. available: whether they are, by the names of
    `algorithm.TOUCHABLE`; called only for data that the recipe requires."""
    closed = f"which the protocol of {benchmark} does not permit"
    reasons = {
        "groups": f"compares training environments, and the training rows of {benchmark} come from one: "
        "choose a benchmark with several, or erm",
        "id_val": f"needs validation rows, and {benchmark} has none",
        "ood_val": f"uses labels of shifted validation rows, {closed}",
        "unlabelled": f"trains on inputs of shifted test rows, {closed}",
        "test batches": f"adapts while it predicts, {closed}",
    }
    needed = list_required_data(recipe)
    for name, reason in reasons.items():
        if name in needed and name in available and not available[name]():
            raise ModelError(f"{recipe.name}: the algorithm {recipe.algorithm} {reason}")
