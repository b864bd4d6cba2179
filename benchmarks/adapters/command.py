"""A model in any language: a command that reads and writes one JSON object per line: `cmd:COMMAND`.

Its stdin has first a line `{"task": {..}, "seed": n, "device": ".."}`, then a line for each row,
`{"id": "17", "inputs": {..}}`: texts as strings, tensors as nested lists, encoded images and audio as
`{"media_type": "image/jpeg", "base64": ".."}`; with `"prompt"` if the benchmark has one (a text, or a list of texts
and encoded files).
For each row it writes a line to its stdout, in any order, one of

    {"id": "17", "prediction": 3}       optionally with "scores": [..], the probability of each class
    {"id": "17", "abstained": true}     the model abstains on purpose
    {"id": "17", "failed": "why"}       no prediction could be made

It exits at the end of its stdin. Its stderr is free; the last lines are repeated in an error if it fails.
"""

from __future__ import annotations

import base64
import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from ...core.canonical import compute_identity
from ...core.documents import parse_json
from ...core.errors import FarshiftError, ModelError, shorten_list
from ...core.files import compute_file_sha256
from ...loaders.batching.encoded import find_media_type
from ..answers import ABSTAINED, ANSWERED, FAILED, Answers, Failed
from ..extraction import Prediction
from ..model import Columns, Task
from ..prompting.prompt import Prompt
from ._child_process import ChildProcess, OutputTimeout
from ._options import Options, read_options

SCHEME = "cmd"


class CommandOptions(Options):
    """Values of `--option`. timeout: seconds without a line after which a command with outstanding rows is ended."""

    timeout: float = Field(600, gt=0)


@dataclass(frozen=True)
class CommandFactory:
    """Starts a process for each model. `code` is a digest of the command's words and of the files among them."""

    words: tuple[str, ...]
    options: CommandOptions
    keeps_time = True
    """It has its own `timeout`, so that no time limit for a whole batch is needed."""

    @property
    def name(self) -> str:
        """The file that the command runs, if one of its words is a file; never its options, which may be secret."""
        return Path(next((word for word in self.words[1:] if _is_file(word)), self.words[0])).name

    @property
    def code(self) -> str:
        files = {word: compute_file_sha256(Path(word)) for word in self.words if _is_file(word)}
        return compute_identity({"words": self.words, "files": files})

    def __call__(self, seed: int, task: Task, device: str, prompt: Prompt | None) -> CommandModel:
        """Return a new model; its process starts with the first prediction."""
        return CommandModel(self, {"task": asdict(task), "seed": seed, "device": device}, task, prompt)


def from_spec(rest: str, options: Mapping[str, str]) -> CommandFactory:
    """Return the factory of `cmd:python my_model.py --flag`. Words are split as by a shell; no shell is run."""
    try:
        words = tuple(shlex.split(rest))
    except ValueError as error:
        raise FarshiftError(f"model cmd:{rest}: {error}") from None
    if not words:
        raise FarshiftError("model cmd: needs a command, such as cmd:python my_model.py")
    return CommandFactory(words, read_options(CommandOptions, SCHEME, options))


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except OSError:  # for example a word that is too long for a file name
        return False


class CommandModel:
    """One process of a command. It ends with `close`, at the end of a `with` block, and with this object."""

    def __init__(self, factory: CommandFactory, opening: Mapping[str, Any], task: Task, prompt: Prompt | None) -> None:
        self._factory, self._opening, self._task, self._prompt = factory, opening, task, prompt
        self._child: ChildProcess | None = None
        self._rows_sent = 0

    def predict(self, batch: Columns) -> list[Prediction | Failed | None] | Answers:
        """Return the command's predictions in the order of the rows; `Answers` if it gives scores.

        Raises `ModelError` if the process exits, does not respond within the timeout, or writes an invalid line; the
        process is then ended.
        """
        try:
            child = self._child = self._child or self._started()
            ids = self._ask(child, batch)
            received: dict[str, _Answer | None] = dict.fromkeys(ids)
            for done in range(len(ids)):
                line = self._line(child, f"{done} of {len(ids)} answers of a batch")
                name, answer = self._read(line, received)
                received[name] = answer
            return self._together([answer for answer in received.values() if answer is not None])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the process. The next call of `predict` starts a new one."""
        child, self._child = self._child, None
        if child is not None:
            child.close()

    def __enter__(self) -> CommandModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> ChildProcess:
        try:
            child = ChildProcess(self._factory.words)
        except OSError as error:
            program = self._factory.words[0]
            raise ModelError(f"cmd: {program} cannot be started: {error.strerror}: check its name and PATH") from None
        child.write([_encode_message(self._opening)])
        return child

    def _ask(self, child: ChildProcess, batch: Columns) -> list[str]:
        """Send the rows of a batch and return their ids, which are numbered over all batches."""
        count = len(batch[self._task.inputs[0]])
        ids = [str(self._rows_sent + row) for row in range(count)]
        rows: list[dict[str, Any]] = [
            {"id": name, "inputs": {field: _to_json_value(values[row]) for field, values in batch.items()}}
            for row, name in enumerate(ids)
        ]
        if self._prompt is not None:
            for message, parts in zip(rows, self._prompt.all_parts(batch), strict=True):
                shown = [part if isinstance(part, str) else _encode_file(part.content) for part in parts]
                message["prompt"] = shown if any(isinstance(part, dict) for part in shown) else "".join(map(str, shown))
        child.write([_encode_message(message) for message in rows])
        self._rows_sent += count
        return ids

    def _line(self, child: ChildProcess, done: str) -> bytes:
        limit = self._factory.options.timeout
        try:
            line = child.read(limit)
        except OutputTimeout:
            raise self._error(
                f"wrote nothing for {limit:g} s after {done}: write each prediction as soon as it is made, "
                "or allow more time (option timeout)"
            ) from None
        if line is None:
            raise self._error(f"{child.exit_summary()} (after {done})")
        return line

    def _read(self, line: bytes, received: Mapping[str, _Answer | None]) -> tuple[str, _Answer]:
        """Parse the row index and the prediction of a line."""
        excerpt = line.decode("utf-8", "replace").strip()[:80]
        try:
            message = parse_json(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise self._error(f"wrote a line that is not a JSON object: {excerpt!r} (messages belong on stderr)")
        name = message.get("id")
        if not isinstance(name, str) or name not in received:
            raise self._error(f"answered id {name!r}, which is not in this batch: repeat each id unchanged")
        if received[name] is not None:
            raise self._error(f"answered id {name!r} twice")
        try:
            return name, _read_answer(message, self._task)
        except ValueError as error:
            raise self._error(f"wrote {excerpt!r}: {error}") from None

    def _together(self, answers: list[_Answer]) -> list[Prediction | Failed | None] | Answers:
        values = [answer.value for answer in answers]
        if all(answer.scores is None for answer in answers):
            return values
        scores = np.full((len(answers), self._task.classes or 0), 1 / (self._task.classes or 1), np.float32)
        status = np.zeros(len(answers), np.int8)
        for row, answer in enumerate(answers):
            if answer.scores is not None:
                scores[row] = answer.scores
            elif answer.value is None or isinstance(answer.value, Failed):
                status[row] = ABSTAINED if answer.value is None else FAILED
            else:
                raise self._error("gave scores for some of its predictions and none for others: give all or none")
        prediction = np.array([value if status[row] == ANSWERED else 0 for row, value in enumerate(values)])
        return Answers(prediction, status, scores)

    def _error(self, what: str) -> ModelError:
        return ModelError(f"cmd:{self._factory.name} {what}")


@dataclass(frozen=True)
class _Answer:
    """The result for a row: a prediction, None if the model abstained, or `Failed`; and class probabilities."""

    value: Prediction | Failed | None
    scores: list[float] | None = None


def _read_answer(message: Mapping[str, Any], task: Task) -> _Answer:
    """Parse the prediction of a message. `ValueError` says what is wrong with it."""
    given = [key for key in ("prediction", "abstained", "failed") if key in message]
    if len(given) != 1:
        raise ValueError('give one of "prediction", "abstained" and "failed"')
    value = message[given[0]]
    if given == ["abstained"]:
        if value is not True:
            raise ValueError('"abstained" must be true or absent')
        return _Answer(None)
    if given == ["failed"]:
        if not isinstance(value, str):
            raise ValueError('"failed" must be a text with the reason')
        return _Answer(Failed(value))
    if task.names and isinstance(value, str):
        if value not in task.names:
            raise ValueError(f"{value!r} is not one of the classes {shorten_list(task.names)}")
        value = task.names.index(value)
    if not _is_prediction(value, task):
        raise ValueError(f"a prediction of this task is {_KINDS[task.type]}")
    return _Answer(value, _read_scores(message["scores"], task) if "scores" in message else None)


_KINDS = {
    "classification": "the index of a class, or its name where classes have names",
    "multilabel": "a list of finite numbers, one per label",
    "regression": "a finite number",
    "sequence": "a text",
    "detection": "a list of boxes, each [x0, y0, x1, y1, score] optionally followed by a class",
}


def _is_prediction(value: object, task: Task) -> bool:
    if task.type in ("multilabel", "detection"):
        return isinstance(value, list)  # its elements are checked later, with all other predictions
    if isinstance(value, bool):
        return False
    if task.type == "regression":
        return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return isinstance(value, int if task.type == "classification" else str)


def _read_scores(scores: Any, task: Task) -> list[float]:
    numbers = isinstance(scores, list) and all(
        isinstance(score, int | float) and not isinstance(score, bool) for score in scores
    )
    if task.type != "classification" or not numbers or len(scores) != task.classes:
        raise ValueError(f'"scores" are {task.classes} probabilities' if task.classes else 'this task has no "scores"')
    return [float(score) for score in scores]


def _to_json_value(value: Any) -> Any:
    """Convert an input to JSON."""
    if isinstance(value, bytes):
        return _encode_file(value)
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _encode_file(content: bytes) -> dict[str, str]:
    return {"media_type": find_media_type(content), "base64": base64.b64encode(content).decode()}


def _encode_message(message: Mapping[str, Any]) -> bytes:
    # ASCII only, so that the encoding in which the command reads does not matter.
    return json.dumps(message, allow_nan=False).encode()
