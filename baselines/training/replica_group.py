"""A replica group: the replicas of one recipe on one benchmark, trained and evaluated together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from ...benchmarks.answers import Answers
from ...benchmarks.model import Budget, Columns, Task, TrainingRows
from ...core.canonical import compute_identity
from ...core.clock import Stopwatch
from ...core.errors import ModelError
from ...core.files import write_atomically
from ...core.plugins import load_module
from ...core.progress import log_message
from ...core.world import SINGLE_PROCESS, World
from ...loaders.batching.encoded_files import EncodedFiles
from ..augmentations import augment_rows
from ..compatibility import check_available, check_task
from ..diagnostics import diagnose_stack
from ..encoding.bad_files import raise_if_unreadable, report_bad_rows
from ..encoding.encoding import RowEncoding
from ..encoding.frozen import FrozenColumns
from ..encoding.token_ids import choose_encoding
from ..estimator import Estimator
from ..recipe import Recipe, check_recipe, resolve_settings
from ..replicas.hyperparameters import make_stack_key
from ..replicas.stacked import count_parameters
from . import stack_size as stacking
from .checkpoint import ADVICE, resume_training, save_checkpoint
from .feed import move_to_device
from .fit_progress_reporter import FitProgressReporter
from .fit_seconds import FitSeconds
from .predict import Encoding, encode_inputs
from .predict import predict_batch as answers_of
from .replica_stack import ReplicaStack
from .sampler import Data
from .trainer import Outcome, Training
from .training_rows import FitInput, Member, digest_batch, digest_tensor, extract_columns, number_groups

CHECKPOINT_SECONDS = 30.0
"""Seconds of training between two checkpoints."""


@dataclass
class _TrainedMember:
    """Where a member's replica is, and the results of its training."""

    coding: Encoding
    stacks: dict[str, tuple[ReplicaStack, int]]
    """By candidate, the last one final: the replica stack and the index in it."""
    remarks: dict[str, Any]


class ReplicaGroup:
    """Replicas of one recipe on one benchmark, trained together."""

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

    def name(self, member: Member) -> str:
        """The name that seeds a member's replica."""
        return f"{self.recipe.name}/{self.benchmark}/{member.label}"

    def remove_checkpoints(self) -> None:
        """Remove the replica group's checkpoints when everything is done."""
        for path in self.written:
            path.unlink(missing_ok=True)
        if self.checkpoints is not None:
            with suppress(OSError):  # not empty, or already removed by another replica group of the run
                self.checkpoints.rmdir()

    def fit(self, rows: FitInput, budget: Budget) -> Fit:
        """Train all members on these rows. A selection rule may have them trained on several sets of rows; each is a
        separate training."""
        return Fit(self, rows, budget)


class Fit:
    """The members of a replica group trained on some rows; each then predicts as if it were alone."""

    def __init__(self, group: ReplicaGroup, rows: FitInput, budget: Budget) -> None:
        self.group, self.task, self.benchmark = group, group.task, group.benchmark
        self.recipe = group.recipe.for_budget(budget.name)
        self._trained: dict[str, _TrainedMember | ModelError | Estimator] = {}
        self._memo: dict[tuple[str, str], dict[str, Any]] = {}
        self._read: Callable[[Columns], Columns] = dict
        self._digest = rows.digest()
        self._shares = FitSeconds([member.label for member in group.members])
        self._fit(rows, budget)
        self._shares.close()

    def remarks(self, member: Member) -> dict[str, Any]:
        """Information on a member's training, and its diagnostics. Raises its `ModelError` if it failed."""
        return self._find_trained(member).remarks

    def seconds(self, member: Member) -> float:
        """A member's share of the training's seconds (`fit_seconds.py`)."""
        return self._shares.of(member.label)

    def _find_trained(self, member: Member) -> _TrainedMember | Estimator:
        result = self._trained[member.label]
        if isinstance(result, ModelError):
            raise result
        return result

    def _fit(self, training_rows: FitInput, budget: Budget) -> None:
        rows, weight, group = extract_columns(training_rows.train)
        if not (weight > 0).all():
            raise ModelError(
                f"{self.recipe.name} on {self.benchmark}: a training row has a weight that is not positive"
            )
        if self.recipe.encoder:
            self._read = FrozenColumns(self.recipe.encoder, self.task, rows, budget.device).columns
            rows = self._read(rows)
        members = self.group.members
        if self.recipe.estimator:
            for member in members:
                name, watch = self.group.name(member), Stopwatch()
                with report_bad_rows(training_rows.train):
                    self._trained[member.label] = Estimator(
                        self.recipe, self.task, self.benchmark, name, member.settings, rows, weight
                    )
                self._shares.add(watch.seconds(), {member.label: 1})
                if self.group.reporter is not None:
                    self.group.reporter.trained(1)
            return
        settings = {member.label: resolve_settings(self.recipe, self.benchmark, member.settings) for member in members}
        steps = budget.steps or self.recipe.steps(budget.name, self.benchmark)
        groups = None if group is None else number_groups(group, group)
        available: dict[str, Callable[[], bool]] = {
            "groups": lambda: groups is not None and int(groups.max()) > 0,
            "id_val": lambda: training_rows.val is not None,
            "ood_val": lambda: training_rows.ood_val is not None,
            "unlabelled": lambda: training_rows.unlabelled is not None,
        }
        check_available(self.recipe, self.benchmark, available)
        together: dict[Any, list[Member]] = {}
        for member in members:
            together.setdefault(make_stack_key(settings[member.label]), []).append(member)
        for some in together.values():
            chosen = [settings[member.label] for member in some]
            augmented_rows, weights, grouped = augment_rows(self.task, rows, weight, group, chosen[0])
            with report_bad_rows(training_rows.train):
                coding = choose_encoding(self.task, augmented_rows, chosen[0])
                encoded = coding.encode(augmented_rows)
            numbers = None if grouped is None else number_groups(grouped, grouped)
            data = Data.of(encoded, torch.from_numpy(weights), numbers)
            if training_rows.unlabelled is not None:
                data = replace(data, unlabelled=encode_inputs(coding, self._read(training_rows.unlabelled)))
                raise_if_unreadable(data.unlabelled or ())
            held_out = {
                name: self._encode_held_out(coding, part_rows, group)
                for name, part_rows in (("id_val", training_rows.val), ("ood_val", training_rows.ood_val))
                if part_rows is not None and len(part_rows)
            }
            try:
                given = replace(data, held_out=held_out)
                self._train(some, chosen, coding, given, move_to_device(given, chosen[0]["feed"], budget.device), steps)
            except ModelError as error:  # of these settings only: the others are tried
                for member in some:
                    self._trained.setdefault(member.label, error)

    def _encode_held_out(self, coding: Encoding, held_out: TrainingRows, known: NDArray[Any] | None) -> Data:
        """Labelled rows that are not trained on."""
        rows, weight, group = extract_columns(held_out)
        groups = None if group is None or known is None else number_groups(group, known)
        with report_bad_rows(held_out):
            encoded = coding.encode(self._read(rows))
            raise_if_unreadable(encoded.inputs)
        return Data.of(encoded, torch.from_numpy(weight), groups)

    def _train(
        self,
        members: list[Member],
        settings: list[dict[str, Any]],
        coding: Encoding,
        given: Data,
        data: Data,
        steps: int,
    ) -> None:
        """given: the rows before they were moved to the device; their digests identify this training."""
        sort = load_module("baselines/networks", self.recipe.network or "", "network").TASK
        if sort == "aligned" and not coding.sizes.aligned:
            raise ModelError(
                f"{self.recipe.name}: the network {self.recipe.network} writes one token for each input token, and "
                f"with the setting format = {settings[0]['format']!r} texts are not aligned: leave the format plain"
            )
        settled = dict(zip((member.label for member in members), settings, strict=True))

        def training(some: Sequence[Member]) -> Training:
            names = [self.group.name(member) for member in some]
            chosen = [settled[member.label] for member in some]
            kind = self.recipe.network or "", self.recipe.algorithm or ""
            stack = ReplicaStack(*kind, chosen, names, coding.sizes, self.task.type, data, steps)
            return Training(stack, data, steps, self.group.together)

        def train_stack(some: Sequence[Member]) -> None:
            identity = self._identity(some, [settled[member.label] for member in some], given, steps)
            stack_training = training(some)
            outcome = self._run(stack_training, identity, self._file(some, ".npz"))
            self._note(some, coding, outcome, data)
            steps_by_member = {member.label: outcome.steps.get(number, 0) for number, member in enumerate(some)}
            self._shares.add(stack_training.seconds, steps_by_member, stack_training.seconds_before)
            if self.group.reporter is not None:
                self.group.reporter.trained(steps * len(some))

        if self.group.together.size > 1:  # all processes must have the same stacks
            stacking.run_in_stacks(members, self.group.stack or 1, train_stack, halves=False)
        else:
            stacking.run_in_stacks(members, self.group.stack or self._count(training, members), train_stack)

    def _count(self, training: Callable[[Sequence[Member]], Training], members: list[Member]) -> int:
        """Choose how many replicas to stack. A resumed training keeps its stack size, since a checkpoint has the
        replicas of one stack and the size is measured, except on a CPU."""
        file = self._file(members, ".stack")
        if file is not None and file.is_file():
            return int(file.read_text("ascii"))
        count = stacking.choose_stack_size(training, members)
        if file is not None:
            write_atomically(file, str(count).encode(), ADVICE)
        return count

    def _file(self, members: Sequence[Member], suffix: str) -> Path | None:
        """The checkpoint file of some members' training on these rows."""
        if self.group.checkpoints is None:
            return None
        key = compute_identity([[self.group.name(member) for member in members], self._digest])
        path = self.group.checkpoints / f"{key[:16]}{suffix}"
        if path not in self.group.written:
            self.group.written.append(path)
        return path

    def _identity(self, members: Sequence[Member], settings: list[dict[str, Any]], data: Data, steps: int) -> str:
        """A digest that identifies a training, so that a checkpoint is only resumed by the training that wrote it."""
        known = [data, *(data.held_out[name] for name in sorted(data.held_out))]
        rows = [[digest_tensor(x) for x in (*some.inputs, some.target, some.weight)] for some in known]
        rows += [[digest_tensor(x)] for x in (data.group, *(data.unlabelled or ())) if x is not None]
        names = [self.group.name(member) for member in members]
        card = (
            self.recipe.model_dump(mode="json"),
            names,
            settings,
            rows,
            steps,
            self.group.code,
            torch.__version__,
        )
        return compute_identity(list(card))

    def _run(self, training: Training, identity: str, path: Path | None) -> Outcome:
        """Train to the end, with regular checkpoints and one at the end."""
        reporter, replicas = self.group.reporter, len(training.stack)
        if path is not None and resume_training(training, path, identity):
            log_message(f"{self.recipe.name} on {self.benchmark}: resumes at step {training.total} of {training.steps}")
        if self.group.together.rank > 0:
            return training.run()
        if reporter is not None:
            reporter.begin(training, replicas)
        last = time.monotonic()

        def watch(now: Training) -> None:
            nonlocal last
            if reporter is not None:
                reporter.step(now, replicas)
            if path is not None and (now.finished or time.monotonic() - last >= CHECKPOINT_SECONDS):
                save_checkpoint(now, path, identity)
                last = time.monotonic()

        return training.run(watch)

    def _note(self, members: Sequence[Member], coding: Encoding, outcome: Outcome, data: Data) -> None:
        for number, why in outcome.failed.items():
            self._trained[members[number].label] = ModelError(f"{self.group.name(members[number])}: {why}")
        for candidate, trained_stack in [*outcome.candidates, *(("last", stack) for stack in outcome.ended)]:
            for at, number in enumerate(trained_stack.number.tolist()):
                # What one replica learns while it predicts must not affect the others.
                stack, position = (
                    (trained_stack.only([at]), 0) if trained_stack.algorithm.adapts else (trained_stack, at)
                )
                if number in outcome.failed:
                    continue
                remarks: dict[str, Any] = {
                    "loss": outcome.losses[number],
                    "steps": float(outcome.steps[number]),
                    "parameters": float(count_parameters(stack.network)),
                    "replicas": float(len(members)),
                }
                attributes = ("decoder", "encoding", "tokenizer")
                remarks |= {name: value for name in attributes if (value := getattr(coding, name, ""))}
                result = self._trained.setdefault(members[number].label, _TrainedMember(coding, {}, remarks))
                assert isinstance(result, _TrainedMember)
                result.stacks[candidate] = stack, position
        for trained_stack in outcome.ended:
            inside = diagnose_stack(trained_stack, data, self.task.type, self.benchmark, self.group.diagnose)
            for number, values in zip(trained_stack.number.tolist(), inside, strict=True):
                if isinstance(result := self._trained[members[number].label], _TrainedMember):
                    result.remarks |= values

    def candidates(self, member: Member) -> list[str]:
        """The names of a trained member's checkpoints, the last one final."""
        result = self._find_trained(member)
        return list(result.stacks) if isinstance(result, _TrainedMember) else ["last"]

    def reset(self, member: Member, candidate: str) -> None:
        """Undo what an adaptive replica learned since training."""
        result = self._find_trained(member)
        assert isinstance(result, _TrainedMember)
        stack = result.stacks[candidate][0]
        stack.algorithm.reset(stack.network)

    def announce(self, member: Member, columns: Mapping[str, EncodedFiles]) -> None:
        """Decode the images that a member will get in batches; an encoder reads images itself."""
        result = self._find_trained(member)
        coding = result.encoding if isinstance(result, Estimator) else result.coding
        if isinstance(coding, RowEncoding) and not self.recipe.encoder:
            coding.announce(columns)

    def predict(self, member: Member, batch: Columns, candidate: str = "last") -> Answers | list[str]:
        """One class with its probabilities, or one text, for each row of `batch`, in its order.

        All replicas of the member's replica stack predict in one pass; the others' answers are stored until they are
        requested for the same batch, once each."""
        result, batch = self._find_trained(member), self._read(batch)
        if isinstance(result, Estimator):
            return result.predict(batch)
        stack, position = result.stacks[candidate]
        if len(stack) == 1:
            return answers_of(result.coding, stack, batch)[position]  # type: ignore[no-any-return]
        key = candidate, digest_batch(batch)
        cached = self._memo.setdefault(key, {})
        if member.label not in cached:
            answers = answers_of(result.coding, stack, batch)
            for other in self.group.members:
                trained = self._trained[other.label]
                # A replica that stopped early has no later candidates.
                if isinstance(trained, _TrainedMember) and trained.stacks.get(candidate, (None,))[0] is stack:
                    cached[other.label] = answers[trained.stacks[candidate][1]]
        answer = cached.pop(member.label)
        if not cached:
            del self._memo[key]
        return answer  # type: ignore[no-any-return]
