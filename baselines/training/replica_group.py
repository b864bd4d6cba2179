"""A replica group: the replicas of one recipe on one benchmark, trained together."""

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from ...benchmarks.harness.loop import TrainingSet, list_used_data
from ...benchmarks.model import Budget, Columns, Task, TrainingRows
from ...core.canonical import compute_identity
from ...core.clock import Stopwatch
from ...core.errors import ModelError
from ...core.files import OUT_ADVICE, write_atomically
from ...core.plugins import load_module
from ...core.progress import log_message
from ...core.world import SINGLE_PROCESS, World
from ..augmentations import augment_rows
from ..compatibility import check_available, check_task, list_required_data
from ..diagnostics import diagnose_stack
from ..encoding.bad_files import raise_if_unreadable, report_bad_rows
from ..encoding.frozen import FrozenColumns, Reader, read_unchanged
from ..encoding.token_ids import choose_encoding
from ..estimator import fit_estimator
from ..recipe import Recipe, check_recipe, resolve_settings
from ..replicas.hyperparameters import make_stack_key
from ..replicas.stacked import count_parameters
from .checkpoint import resume_training, save_checkpoint
from .feed import move_to_device
from .fit_progress_reporter import FitProgressReporter
from .replica_stack import ReplicaStack
from .sampler import Data
from .stack_size import choose_stack_size, halve_stack
from .trained_group import AdaptiveReplica, Encoding, Replica, TrainedGroup, TrainedStack, encode_inputs
from .trainer import StackOutcome, Training
from .training_rows import FitInput, Member, extract_columns, number_groups

CHECKPOINT_SECONDS = 30.0
"""Seconds of training between two checkpoints."""


@dataclass(frozen=True)
class EncodedRows:
    """The rows of a training as some members read them, which can be stacked."""

    members: list[Member]
    settings: Mapping[str, dict[str, Any]]
    """By the member's label."""
    coding: Encoding
    read: Reader
    """Reads a batch's columns before they are encoded."""
    digest: str
    """Of the rows as they were given."""
    data: Data
    steps: int


class ReplicaGroup:
    """Replicas of one recipe on one benchmark, trained together. `train` trains them as the evaluation loop asks for
    it (`benchmarks/harness/loop.py`)."""

    def __init__(
        self,
        recipe: Recipe,
        task: Task,
        members: Sequence[Member],
        benchmark: str,
        checkpoints: Path | None = None,
        stack: int = 0,
        code: str = "",
        world: World = SINGLE_PROCESS,
        diagnose: Sequence[str] = (),
        reporter: FitProgressReporter | None = None,
    ) -> None:
        """checkpoints: a folder for them, from which an interrupted training is resumed; none by default. stack: the
        most replicas to train at once; 0: automatic. code: a digest of the training code, so that no checkpoint of
        other code is resumed. world: the processes that train each replica together. diagnose: names of diagnostics to
        add to a trained member's remarks. reporter: receives the progress of the training."""
        check_recipe(recipe, f"recipe {recipe.name}")
        check_task(recipe, task)
        self.recipe, self.task, self.members, self.benchmark = recipe, task, list(members), benchmark
        self.checkpoints, self.stack, self.code, self.world = checkpoints, stack, code, world
        self.diagnose, self.reporter = tuple(diagnose), reporter

    def make_name(self, member: Member) -> str:
        """The name that seeds a member's replica."""
        return f"{self.recipe.name}/{self.benchmark}/{member.label}"

    def train(self, rows: TrainingSet, budget: Budget) -> TrainedGroup:
        """Train all members on the rows of one training of a benchmark."""
        opened = rows.opened(list_required_data(self.recipe).__contains__)
        return self.fit(FitInput(rows.train(), rows.val(), **opened), budget, list_used_data(opened))

    def fit(self, rows: FitInput, budget: Budget, touched: Sequence[str] = ()) -> TrainedGroup:
        """Train all members on these rows. A selection rule may have them trained on several sets of rows; each is a
        separate training. touched: the additional data among the rows, by name."""
        fit, watch, seconds_before = TrainedGroup(touched), Stopwatch(), 0.0
        if self.recipe.estimator:
            self._fit_estimators(fit, rows, budget)
        else:
            for members, encode in self.encode(rows, budget):
                try:
                    seconds_before += self._train_encoded(fit, encode())
                except ModelError as error:  # of these settings only: the others are tried
                    for member in members:
                        fit.results.setdefault(member.label, error)
        fit.seconds = round((watch.seconds() + seconds_before) / len(self.members), 3)
        return fit

    def _fit_estimators(self, fit: TrainedGroup, given: FitInput, budget: Budget) -> None:
        columns, weight, _, read = self._read_columns(given.train, budget)
        recipe = self.recipe.for_budget(budget.name)
        for member in self.members:
            with report_bad_rows(given.train):
                fit.results[member.label] = fit_estimator(
                    recipe, self.task, self.benchmark, self.make_name(member), member.settings, columns, weight, read
                )
            if self.reporter is not None:
                self.reporter.trained(1)

    def _read_columns(
        self, train: TrainingRows, budget: Budget
    ) -> tuple[Columns, NDArray[Any], NDArray[Any] | None, Reader]:
        """The columns of the training rows (with features, if the recipe has an encoder), their weights and groups, and
        how other rows are read."""
        columns, weight, group = extract_columns(train)
        if not (weight > 0).all():
            raise ModelError(
                f"{self.recipe.name} on {self.benchmark}: a training row has a weight that is not positive"
            )
        if not self.recipe.encoder:
            return columns, weight, group, read_unchanged
        read = FrozenColumns(self.recipe.encoder, self.task, columns, budget.device).columns
        return read(columns), weight, group, read

    def encode(self, given: FitInput, budget: Budget) -> Iterator[tuple[list[Member], Callable[[], EncodedRows]]]:
        """The members that can be stacked, and how to encode the rows for them."""
        columns, weight, group, read = self._read_columns(given.train, budget)
        recipe = self.recipe.for_budget(budget.name)
        settings = {member.label: resolve_settings(recipe, self.benchmark, member.settings) for member in self.members}
        steps, digest = budget.steps or recipe.steps(budget.name, self.benchmark), given.digest()
        self._check_available(given, group)
        alike: dict[Any, list[Member]] = {}
        for member in self.members:
            alike.setdefault(make_stack_key(settings[member.label]), []).append(member)

        def encode(members: list[Member]) -> EncodedRows:
            chosen = settings[members[0].label]
            augmented, weights, groups = augment_rows(self.task, columns, weight, group, chosen)
            with report_bad_rows(given.train):
                coding = choose_encoding(self.task, augmented, chosen)
                encoded = coding.encode(augmented)
            self._check_network(coding, chosen)
            numbers = None if groups is None else number_groups(groups, groups)
            data = Data.of(encoded, torch.from_numpy(weights), numbers)
            if given.unlabelled is not None:
                data = replace(data, unlabelled=encode_inputs(coding, read(given.unlabelled)))
                raise_if_unreadable(data.unlabelled or ())
            held_out = {
                name: _encode_held_out(coding, read, rows, group)
                for name, rows in (("id_val", given.val), ("ood_val", given.ood_val))
                if rows is not None and len(rows)
            }
            data = replace(data, held_out=held_out)
            moved = move_to_device(data, chosen["feed"], budget.device)
            return EncodedRows(members, settings, coding, read, digest, moved, steps)

        for members in alike.values():
            yield members, lambda members=members: encode(members)  # type: ignore[misc]

    def _check_available(self, given: FitInput, group: NDArray[Any] | None) -> None:
        available = {
            "groups": lambda: group is not None and len(set(group.tolist())) > 1,
            "id_val": lambda: given.val is not None,
            "ood_val": lambda: given.ood_val is not None,
            "unlabelled": lambda: given.unlabelled is not None,
        }
        check_available(self.recipe, self.benchmark, available)

    def _check_network(self, coding: Encoding, settings: Mapping[str, Any]) -> None:
        sort = load_module("baselines/networks", self.recipe.network or "", "network").TASK
        if sort == "aligned" and not coding.sizes.aligned:
            raise ModelError(
                f"{self.recipe.name}: the network {self.recipe.network} writes one token for each input token, and "
                f"with the setting format = {settings['format']!r} texts are not aligned: leave the format plain"
            )

    def _train_encoded(self, fit: TrainedGroup, rows: EncodedRows) -> float:
        """Train members that can be stacked: as many at once as suffices, or as fit the memory. Return the seconds
        that earlier processes spent, as checkpoints recorded them."""
        shared = self.world.size > 1  # all processes must have the same stacks
        count, remaining, seconds_before = (
            (self.stack or 1) if shared else self.count_stacked(rows),
            [*rows.members],
            0.0,
        )
        while remaining:
            members = remaining[:count]
            try:
                seconds_before += self._train_stack(fit, rows, members)
                remaining = remaining[len(members) :]
                continue
            except (MemoryError, RuntimeError) as error:
                if shared:
                    raise
                count = halve_stack(error, len(members))
            gc.collect()  # the failed training may be in a reference cycle
        return seconds_before

    def _train_stack(self, fit: TrainedGroup, rows: EncodedRows, members: list[Member]) -> float:
        training, path = self.make_training(rows, members), self._make_path(rows, members, ".pt")
        if path is not None and resume_training(training, path):
            log_message(f"{self.recipe.name} on {self.benchmark}: resumes at step {training.total} of {training.steps}")
        outcome = training.run(self._make_watcher(training, path))
        self._add_outcome(fit, members, rows, outcome)
        if self.reporter is not None:
            self.reporter.trained(rows.steps * len(members))
        return training.seconds_before

    def _add_outcome(self, fit: TrainedGroup, members: list[Member], rows: EncodedRows, outcome: StackOutcome) -> None:
        """Add the replicas of a trained stack to the results, with their remarks and diagnostics."""
        adapts = "test batches" in list_required_data(self.recipe)
        stacks: dict[int, dict[str, tuple[TrainedStack, int]]] = {}
        remarks: dict[int, dict[str, Any]] = {}
        for checkpoint, stack in [*outcome.candidates, *(("last", stack) for stack in outcome.ended)]:
            numbers = [(at, number) for at, number in enumerate(stack.number.tolist()) if number not in outcome.failed]
            shared = TrainedStack(stack, rows.coding, rows.read, [at for at, _ in numbers])
            for at, number in numbers:
                # What one replica learns while it predicts must not affect the others.
                own = (TrainedStack(stack.only([at]), rows.coding, rows.read, [0]), 0) if adapts else (shared, at)
                stacks.setdefault(number, {})[checkpoint] = own
                remarks[number] = {
                    "loss": outcome.losses[number],
                    "steps": float(outcome.steps[number]),
                    "parameters": float(count_parameters(stack.network)),
                    "replicas": float(len(members)),
                } | {
                    name: value
                    for name in ("decoder", "encoding", "tokenizer")
                    if (value := getattr(rows.coding, name, ""))
                }
        for stack in outcome.ended:
            diagnosed = diagnose_stack(stack, rows.data, self.task.type, self.benchmark, self.diagnose)
            for number, values in zip(stack.number.tolist(), diagnosed, strict=True):
                if number in remarks:
                    remarks[number] |= values
        kind = AdaptiveReplica if adapts else Replica
        fit.results |= {members[number].label: kind(stacks[number], remarks[number]) for number in stacks}
        for number, why in outcome.failed.items():
            fit.results[members[number].label] = ModelError(f"{self.make_name(members[number])}: {why}")

    def make_training(self, rows: EncodedRows, members: Sequence[Member]) -> Training:
        """Make the training of a stack of members, not begun."""
        stack = ReplicaStack(
            self.recipe.network or "",
            self.recipe.algorithm or "",
            [rows.settings[member.label] for member in members],
            [self.make_name(member) for member in members],
            rows.coding.sizes,
            self.task.type,
            rows.data,
            rows.steps,
        )
        return Training(stack, rows.data, rows.steps, self.world)

    def count_stacked(self, rows: EncodedRows) -> int:
        """Choose how many replicas to stack. A resumed training keeps its stack size, since a checkpoint has the
        replicas of one stack and the size is measured, except on a CPU."""
        if self.stack:
            return self.stack
        file = self._make_path(rows, rows.members, ".stack")
        if file is not None and file.is_file():
            return int(file.read_text("ascii"))
        count = choose_stack_size(lambda members: self.make_training(rows, members), rows.members)
        if file is not None:
            write_atomically(file, str(count).encode(), OUT_ADVICE)
        return count

    def _make_path(self, rows: EncodedRows, members: Sequence[Member], suffix: str) -> Path | None:
        """The checkpoint file of some members' training. All that determines the training is in its name, so that no
        other training resumes it."""
        if self.checkpoints is None:
            return None
        decides = [self.recipe.model_dump(mode="json"), self.code, torch.__version__, rows.digest, rows.steps]
        decides += [[self.make_name(member), rows.settings[member.label]] for member in members]
        return self.checkpoints / f"{compute_identity(decides)[:16]}{suffix}"

    def _make_watcher(self, training: Training, path: Path | None) -> Callable[[Training], None]:
        """What is called after each step: it reports progress, and writes checkpoints regularly and at the end."""
        if self.world.rank > 0:
            return lambda _: None
        reporter, replicas, last = self.reporter, len(training.stack), time.monotonic()
        if reporter is not None:
            reporter.begin(training, replicas)

        def watch(now: Training) -> None:
            nonlocal last
            if reporter is not None:
                reporter.step(now, replicas)
            if path is not None and (now.finished or time.monotonic() - last >= CHECKPOINT_SECONDS):
                save_checkpoint(now, path)
                last = time.monotonic()

        return watch


def _encode_held_out(coding: Encoding, read: Reader, held_out: TrainingRows, known: NDArray[Any] | None) -> Data:
    """Labelled rows that are not trained on."""
    rows, weight, group = extract_columns(held_out)
    groups = None if group is None or known is None else number_groups(group, known)
    with report_bad_rows(held_out):
        encoded = coding.encode(read(rows))
        raise_if_unreadable(encoded.inputs)
    return Data.of(encoded, torch.from_numpy(weight), groups)
