"""A replica group: the replicas of one recipe on one benchmark, trained together."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from ...benchmarks.harness.loop import TrainingSet, list_used_data
from ...benchmarks.model import Budget, Columns, Task, TrainingRows
from ...core.canonical import compute_identity
from ...core.errors import ModelError
from ...core.files import write_atomically
from ...core.plugins import load_module
from ...core.progress import log_message
from ...core.world import SINGLE_PROCESS, World
from ..augmentations import augment_rows
from ..compatibility import check_available, check_task, list_required_data
from ..encoding.bad_files import raise_if_unreadable, report_bad_rows
from ..encoding.frozen import FrozenColumns
from ..encoding.token_ids import choose_encoding
from ..estimator import fit_estimator
from ..recipe import Recipe, check_recipe, resolve_settings
from ..replicas.hyperparameters import make_stack_key
from .checkpoint import ADVICE, resume_training, save_checkpoint
from .feed import move_to_device
from .fit_progress_reporter import FitProgressReporter
from .predict import Encoding, encode_inputs
from .replica_stack import ReplicaStack
from .sampler import Data
from .stack_size import choose_stack_size, halve_stack
from .trained_group import TrainedGroup, make_replica_name
from .trainer import Training
from .training_rows import FitInput, Member, digest_tensor, extract_columns, number_groups

CHECKPOINT_SECONDS = 30.0
"""Seconds of training between two checkpoints."""


@dataclass(frozen=True)
class EncodedRows:
    """The rows of a training as some members read them, which can be stacked."""

    members: list[Member]
    settings: Mapping[str, dict[str, Any]]
    """By the member's label."""
    coding: Encoding
    given: Data
    """The rows before they were moved to the device; their digests identify a training."""
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
        together: World = SINGLE_PROCESS,
        diagnose: Sequence[str] = (),
        reporter: FitProgressReporter | None = None,
    ) -> None:
        """checkpoints: a folder for them, from which an interrupted training is resumed; none by default. stack: the
        most replicas to train at once; 0: automatic. code: a digest of the training code, so that no checkpoint of
        other code is resumed. together: the processes that train each replica together. diagnose: names of diagnostics
        to add to a trained member's remarks. reporter: receives the progress of the training."""
        check_recipe(recipe, f"recipe {recipe.name}")
        check_task(recipe, task)
        self.recipe, self.task, self.benchmark = recipe, task, benchmark
        self.checkpoints, self.stack, self.code, self.together = checkpoints, stack, code, together
        self.diagnose, self.reporter = tuple(diagnose), reporter
        self.written: list[Path] = []
        self.members = list(members)

    def train(self, rows: TrainingSet, budget: Budget) -> TrainedGroup:
        """Train all members on the rows of one training of a benchmark."""
        opened = rows.opened(list_required_data(self.recipe).__contains__)
        return self.fit(FitInput(rows.train(), rows.val(), **opened), budget, list_used_data(opened))

    def fit(self, rows: FitInput, budget: Budget, touched: Sequence[str] = ()) -> TrainedGroup:
        """Train all members on these rows. A selection rule may have them trained on several sets of rows; each is a
        separate training. touched: the additional data among the rows, by name."""
        trained = TrainedGroup(self.recipe, self.task, self.benchmark, self.members, touched)
        if self.recipe.estimator:
            self._fit_estimators(trained, rows, budget)
        else:
            digest = rows.digest()
            for encoded in self.encode(trained, rows, budget):
                try:
                    self._train_encoded(trained, encoded, digest)
                except ModelError as error:  # of these settings only: the others are tried
                    for member in encoded.members:
                        trained.results.setdefault(member.label, error)
        trained.close()
        return trained

    def _fit_estimators(self, trained: TrainedGroup, given: FitInput, budget: Budget) -> None:
        columns, weight, _ = self._read_columns(trained, given.train, budget)
        recipe = self.recipe.for_budget(budget.name)
        for member in self.members:
            name = make_replica_name(recipe, self.benchmark, member)
            with report_bad_rows(given.train):
                trained.results[member.label] = fit_estimator(
                    recipe, self.task, self.benchmark, name, member.settings, columns, weight
                )
            if self.reporter is not None:
                self.reporter.trained(1)

    def _read_columns(
        self, trained: TrainedGroup, train: TrainingRows, budget: Budget
    ) -> tuple[Columns, NDArray[Any], NDArray[Any] | None]:
        """The columns of the training rows (with features, if the recipe has an encoder), their weights and groups."""
        columns, weight, group = extract_columns(train)
        if not (weight > 0).all():
            raise ModelError(
                f"{self.recipe.name} on {self.benchmark}: a training row has a weight that is not positive"
            )
        if not self.recipe.encoder:
            return columns, weight, group
        trained.read = FrozenColumns(self.recipe.encoder, self.task, columns, budget.device).columns
        return trained.read(columns), weight, group

    def encode(self, trained: TrainedGroup, given: FitInput, budget: Budget) -> Iterator[EncodedRows]:
        """Encode the rows, once for all members that can be stacked."""
        columns, weight, group = self._read_columns(trained, given.train, budget)
        recipe = self.recipe.for_budget(budget.name)
        settings = {member.label: resolve_settings(recipe, self.benchmark, member.settings) for member in self.members}
        steps = budget.steps or recipe.steps(budget.name, self.benchmark)
        self._check_available(given, group)
        alike: dict[Any, list[Member]] = {}
        for member in self.members:
            alike.setdefault(make_stack_key(settings[member.label]), []).append(member)
        for members in alike.values():
            chosen = settings[members[0].label]
            augmented, weights, groups = augment_rows(self.task, columns, weight, group, chosen)
            with report_bad_rows(given.train):
                coding = choose_encoding(self.task, augmented, chosen)
                encoded = coding.encode(augmented)
            numbers = None if groups is None else number_groups(groups, groups)
            data = Data.of(encoded, torch.from_numpy(weights), numbers)
            if given.unlabelled is not None:
                data = replace(data, unlabelled=encode_inputs(coding, trained.read(given.unlabelled)))
                raise_if_unreadable(data.unlabelled or ())
            held_out = {
                name: _encode_held_out(coding, trained.read, rows, group)
                for name, rows in (("id_val", given.val), ("ood_val", given.ood_val))
                if rows is not None and len(rows)
            }
            data = replace(data, held_out=held_out)
            try:
                moved = move_to_device(data, chosen["feed"], budget.device)
            except ModelError as error:
                trained.results |= {member.label: error for member in members}
                continue
            yield EncodedRows(members, settings, coding, data, moved, steps)

    def _check_available(self, given: FitInput, group: NDArray[Any] | None) -> None:
        check_available(
            self.recipe,
            self.benchmark,
            {
                "groups": lambda: group is not None and len(set(group.tolist())) > 1,
                "id_val": lambda: given.val is not None,
                "ood_val": lambda: given.ood_val is not None,
                "unlabelled": lambda: given.unlabelled is not None,
            },
        )

    def _train_encoded(self, trained: TrainedGroup, rows: EncodedRows, digest: str) -> None:
        """Train members that can be stacked: as many at once as suffices, or as fit the memory."""
        self._check_network(rows)
        shared = self.together.size > 1  # all processes must have the same stacks
        count = (self.stack or 1) if shared else self.count_stacked(rows, digest)
        remaining = list(rows.members)
        while remaining:
            members = remaining[:count]
            try:
                self._train_stack(trained, rows, members, digest)
                remaining = remaining[len(members) :]
                continue
            except (MemoryError, RuntimeError) as error:
                count = halve_stack(error, len(members), fixed=shared)
            gc.collect()  # the failed training may be in a reference cycle

    def _train_stack(self, trained: TrainedGroup, rows: EncodedRows, members: list[Member], digest: str) -> None:
        training, path = self.make_training(rows, members), self._make_path(members, digest, ".pt")
        identity = self._compute_identity(rows, members)
        if path is not None and resume_training(training, path, identity):
            trained.seconds_before += training.seconds_before
            log_message(f"{self.recipe.name} on {self.benchmark}: resumes at step {training.total} of {training.steps}")
        outcome = training.run(self._make_watcher(training, path, identity))
        trained.add_outcome(members, rows.coding, outcome, rows.data, self.diagnose)
        if self.reporter is not None:
            self.reporter.trained(rows.steps * len(members))

    def _check_network(self, rows: EncodedRows) -> None:
        sort = load_module("baselines/networks", self.recipe.network or "", "network").TASK
        if sort == "aligned" and not rows.coding.sizes.aligned:
            how = rows.settings[rows.members[0].label]["format"]
            raise ModelError(
                f"{self.recipe.name}: the network {self.recipe.network} writes one token for each input token, and "
                f"with the setting format = {how!r} texts are not aligned: leave the format plain"
            )

    def make_training(self, rows: EncodedRows, members: Sequence[Member]) -> Training:
        """Make the training of a stack of members, not begun."""
        names = [make_replica_name(self.recipe, self.benchmark, member) for member in members]
        settings = [rows.settings[member.label] for member in members]
        stack = ReplicaStack(
            self.recipe.network or "",
            self.recipe.algorithm or "",
            settings,
            names,
            rows.coding.sizes,
            self.task.type,
            rows.data,
            rows.steps,
        )
        return Training(stack, rows.data, rows.steps, self.together)

    def count_stacked(self, rows: EncodedRows, digest: str = "") -> int:
        """Choose how many replicas to stack. A resumed training keeps its stack size, since a checkpoint has the
        replicas of one stack and the size is measured, except on a CPU."""
        if self.stack:
            return self.stack
        file = self._make_path(rows.members, digest, ".stack")
        if file is not None and file.is_file():
            return int(file.read_text("ascii"))
        count = choose_stack_size(lambda members: self.make_training(rows, members), rows.members)
        if file is not None:
            write_atomically(file, str(count).encode(), ADVICE)
        return count

    def _make_path(self, members: Sequence[Member], digest: str, suffix: str) -> Path | None:
        """The checkpoint file of some members' training on rows with this digest."""
        if self.checkpoints is None:
            return None
        names = [make_replica_name(self.recipe, self.benchmark, member) for member in members]
        path = self.checkpoints / f"{compute_identity([names, digest])[:16]}{suffix}"
        if path not in self.written:
            self.written.append(path)
        return path

    def _compute_identity(self, rows: EncodedRows, members: Sequence[Member]) -> str:
        """A digest that identifies a training, so that a checkpoint is only resumed by the training that wrote it."""
        given = rows.given
        known = [given, *(given.held_out[name] for name in sorted(given.held_out))]
        digests = [[digest_tensor(x) for x in (*some.inputs, some.target, some.weight)] for some in known]
        digests += [[digest_tensor(x)] for x in (given.group, *(given.unlabelled or ())) if x is not None]
        return compute_identity(
            [
                self.recipe.model_dump(mode="json"),
                [make_replica_name(self.recipe, self.benchmark, member) for member in members],
                [rows.settings[member.label] for member in members],
                digests,
                rows.steps,
                self.code,
                torch.__version__,
            ]
        )

    def _make_watcher(self, training: Training, path: Path | None, identity: str) -> Callable[[Training], None] | None:
        """What is called after each step: it reports progress, and writes checkpoints regularly and at the end."""
        reporter, replicas, last = self.reporter, len(training.stack), time.monotonic()
        if self.together.rank > 0:
            return None
        if reporter is not None:
            reporter.begin(training, replicas)

        def watch(now: Training) -> None:
            nonlocal last
            if reporter is not None:
                reporter.step(now, replicas)
            if path is not None and (now.finished or time.monotonic() - last >= CHECKPOINT_SECONDS):
                save_checkpoint(now, path, identity)
                last = time.monotonic()

        return watch

    def remove_checkpoints(self) -> None:
        """Remove the replica group's checkpoints when everything is done."""
        for path in self.written:
            path.unlink(missing_ok=True)
        if self.checkpoints is not None:
            with suppress(OSError):  # not empty, or already removed by another replica group of the run
                self.checkpoints.rmdir()


def _encode_held_out(
    coding: Encoding, read: Callable[[Columns], Columns], held_out: TrainingRows, known: NDArray[Any] | None
) -> Data:
    """Labelled rows that are not trained on."""
    rows, weight, group = extract_columns(held_out)
    groups = None if group is None or known is None else number_groups(group, known)
    with report_bad_rows(held_out):
        encoded = coding.encode(read(rows))
        raise_if_unreadable(encoded.inputs)
    return Data.of(encoded, torch.from_numpy(weight), groups)
