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
import os
import shlex
import signal
import subprocess
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryFile
from threading import Thread
from typing import IO, Any

import numpy as np
from pydantic import Field

from ...core.canonical import compute_identity
from ...core.documents import parse_json
from ...core.errors import FarshiftError, ModelError
from ...core.files import compute_file_sha256
from ...loaders.batching.encoded import find_media_type
from ..answers import ABSTAINED, ANSWERED, FAILED, Answers, Failed
from ..extraction import Prediction
from ..model import Columns, Task
from ..prompting.prompt import Prompt
from . import Options, read_options

SCHEME = "cmd"

GRACE = 1.0
"""Seconds that a process may take to exit after its stdin is closed, and again after a signal."""


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


_Answer = tuple[Any, list[float] | None]
"""The result for a row: a prediction, None if the model abstained, or `Failed`; and class probabilities."""


class CommandModel:
    """One process of a command. It ends with `close`, and with this object."""

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
            rows = self._list_rows(batch)
            child.write(rows)
            ids, received = {row["id"] for row in rows}, dict[str, _Answer]()
            while len(received) < len(rows):
                message, excerpt = self._read_message(child, f"{len(received)} of {len(rows)} answers of a batch")
                name = message.get("id")
                if not isinstance(name, str) or name not in ids - received.keys():
                    raise self._error(f"answered id {name!r}, which is not outstanding: repeat each id once, unchanged")
                received[name] = self._read_answer(message, excerpt)
            return self._together([received[row["id"]] for row in rows])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the process. The next call of `predict` starts a new one."""
        child, self._child = self._child, None
        if child is not None:
            child.close()

    def _started(self) -> ChildProcess:
        try:
            child = ChildProcess(self._factory.words)
        except OSError as error:
            program = self._factory.words[0]
            raise ModelError(f"cmd: {program} cannot be started: {error.strerror}: check its name and PATH") from None
        child.write([self._opening])
        return child

    def _list_rows(self, batch: Columns) -> list[dict[str, Any]]:
        """Return the messages with the rows of a batch, whose ids are numbered over all batches."""
        count = len(batch[self._task.inputs[0]])
        rows: list[dict[str, Any]] = [
            {
                "id": str(self._rows_sent + row),
                "inputs": {field: _to_json_value(values[row]) for field, values in batch.items()},
            }
            for row in range(count)
        ]
        if self._prompt is not None:
            for message, parts in zip(rows, self._prompt.all_parts(batch), strict=True):
                shown = [part if isinstance(part, str) else _encode_file(part.content) for part in parts]
                message["prompt"] = shown if any(isinstance(part, dict) for part in shown) else "".join(map(str, shown))
        self._rows_sent += count
        return rows

    def _read_message(self, child: ChildProcess, done: str) -> tuple[dict[str, Any], str]:
        """Return the next message, and the beginning of its line for errors."""
        limit = self._factory.options.timeout
        try:
            line = child.read(limit)
        except Empty:
            raise self._error(
                f"wrote nothing for {limit:g} s after {done}: write each prediction as soon as it is made, "
                "or allow more time (option timeout)"
            ) from None
        if line is None:
            raise self._error(f"{child.exit_summary()} (after {done})")
        excerpt = line.decode("utf-8", "replace").strip()[:80]
        try:
            message = parse_json(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise self._error(f"wrote a line that is not a JSON object: {excerpt!r} (messages belong on stderr)")
        return message, excerpt

    def _read_answer(self, message: Mapping[str, Any], excerpt: str) -> _Answer:
        """Read the prediction of a message; whether it fits the task is checked as for all models."""
        given = [key for key in ("prediction", "abstained", "failed") if key in message]
        value, scores = message[given[0]] if len(given) == 1 else None, message.get("scores")
        if given == ["abstained"] and value is True:
            return None, scores
        if given == ["failed"] and isinstance(value, str):
            return Failed(value), scores
        fits = scores is None or (isinstance(scores, list) and len(scores) == self._task.classes)
        if given == ["prediction"] and value is not None and not isinstance(value, bool) and fits:
            return value, scores
        beside = f' with or without {self._task.classes} probabilities as "scores"' if self._task.classes else ""
        raise self._error(
            f'wrote {excerpt!r}: give one of a "prediction"{beside}, "abstained": true, and "failed": "the reason"'
        )

    def _together(self, answers: list[_Answer]) -> list[Prediction | Failed | None] | Answers:
        values = [value for value, _ in answers]
        if all(scores is None for _, scores in answers):
            return values
        status = [ABSTAINED if value is None else FAILED if isinstance(value, Failed) else ANSWERED for value in values]
        if any(scores is None and state == ANSWERED for (_, scores), state in zip(answers, status, strict=True)):
            raise self._error("gave scores for some of its predictions and none for others: give all or none")
        classes = self._task.classes or 1
        scores = np.array([scores or [1 / classes] * classes for _, scores in answers], np.float32)
        prediction = np.array([value if state == ANSWERED else 0 for value, state in zip(values, status, strict=True)])
        return Answers(prediction, np.array(status, np.int8), scores)

    def _error(self, what: str) -> ModelError:
        return ModelError(f"cmd:{self._factory.name} {what}")


def _to_json_value(value: Any) -> Any:
    """Convert an input to JSON."""
    if isinstance(value, bytes):
        return _encode_file(value)
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _encode_file(content: bytes) -> dict[str, str]:
    return {"media_type": find_media_type(content), "base64": base64.b64encode(content).decode()}


class ChildProcess:
    """A running command. Its process group is ended by `close`, with this object, and with this program.

    Raises `OSError` if the command cannot be started.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._stderr = TemporaryFile()  # noqa: SIM115  (closed with this object)
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            # Otherwise a Python program buffers its output in blocks.
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            # Its own process group: child processes are ended with it, and Ctrl-C reaches this program only.
            start_new_session=True,
        )
        self._lines: Queue[bytes | None] = Queue()
        self._to_write: Queue[bytes | None] = Queue()
        # The threads hold pipes and queues, never this object: otherwise it could not be freed while they run.
        _start_thread(_write_lines, self._process.stdin, self._to_write)
        _start_thread(_read_lines, self._process.stdout, self._lines)
        self._finalizer = weakref.finalize(self, _end_process, self._process, self._to_write)

    def write(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Queue messages, a line each, to be written as fast as the process reads them."""
        # ASCII only, so that the encoding in which the command reads does not matter.
        self._to_write.put(b"".join(json.dumps(message, allow_nan=False).encode() + b"\n" for message in messages))

    def read(self, timeout: float) -> bytes | None:
        """Return the next line of the output, or None at its end; `Empty` after `timeout` seconds."""
        return self._lines.get(timeout=timeout)

    def exit_summary(self) -> str:
        """Return one line with how the process ended and the last lines of its stderr."""
        try:
            code = self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return "closed its output"
        how = f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - 300))
        lines = self._stderr.read().decode("utf-8", "replace").splitlines()
        words = " | ".join(text for line in lines if (text := " ".join(line.split())))
        return f"{how}: {words}" if words else f"{how} and wrote nothing to stderr"

    def close(self) -> None:
        """End the process and its child processes."""
        self._finalizer()


def _start_thread(work: Callable[..., None], *arguments: object) -> None:
    Thread(target=work, args=arguments, daemon=True).start()


def _write_lines(pipe: IO[bytes], to_write: Queue[bytes | None]) -> None:
    with suppress(OSError), pipe:  # that the process ended shows at the end of its output
        while (content := to_write.get()) is not None:
            pipe.write(content)
            pipe.flush()


def _read_lines(pipe: IO[bytes], lines: Queue[bytes | None]) -> None:
    with pipe:
        for line in pipe:
            lines.put(line)
    lines.put(None)


def _end_process(process: subprocess.Popen[bytes], to_write: Queue[bytes | None]) -> None:
    """Wait for the process to exit, then terminate its process group, then kill it, with a delay before each step."""
    to_write.put(None)
    for sent in (signal.SIGTERM, signal.SIGKILL):
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sent)
    process.wait()
