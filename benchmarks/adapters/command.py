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
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, Queue
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

_ERROR_LINES = 3
"""Lines at the end of its stderr that are repeated in an error."""


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
            received: dict[str, _Answer] = {}
            for done in range(len(ids)):
                line = self._line(child, f"{done} of {len(ids)} answers of a batch")
                message, excerpt = self._parse_line(line)
                name = message.get("id")
                if not isinstance(name, str) or name not in ids:
                    raise self._error(f"answered id {name!r}, which is not in this batch: repeat each id unchanged")
                if name in received:
                    raise self._error(f"answered id {name!r} twice")
                received[name] = self._read_answer(message, excerpt)
            return self._together([received[name] for name in ids])
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

    def _ask(self, child: ChildProcess, batch: Columns) -> dict[str, None]:
        """Send the rows of a batch and return their ids, which are numbered over all batches."""
        count = len(batch[self._task.inputs[0]])
        ids = dict.fromkeys(str(self._rows_sent + row) for row in range(count))
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

    def _parse_line(self, line: bytes) -> tuple[dict[str, Any], str]:
        """Parse the message of a line, and return it with the beginning of the line for errors."""
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
        value, scores, problem = message[given[0]] if given else None, message.get("scores"), ""
        if len(given) != 1:
            problem = 'give one of "prediction", "abstained" and "failed"'
        elif given == ["abstained"]:
            problem, value = "" if value is True else '"abstained" must be true or absent', None
        elif given == ["failed"]:
            problem, value = (
                "" if isinstance(value, str) else '"failed" must be a text with the reason',
                Failed(str(value)),
            )
        elif value is None or isinstance(value, bool):
            problem = f'"prediction" cannot be {json.dumps(value)}'
        elif scores is not None and (not isinstance(scores, list) or len(scores) != self._task.classes):
            classes = self._task.classes
            problem = f'"scores" are {classes} probabilities' if classes else 'this task has no "scores"'
        if problem:
            raise self._error(f"wrote {excerpt!r}: {problem}")
        return value, scores

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


def _encode_message(message: Mapping[str, Any]) -> bytes:
    # ASCII only, so that the encoding in which the command reads does not matter.
    return json.dumps(message, allow_nan=False).encode()


class OutputTimeout(Exception):
    """The process wrote no line in time."""


class ChildProcess:
    """A running command. Its process group is ended by `close`, with this object, and with this program.

    Raises `OSError` if the command cannot be started.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Otherwise a Python program buffers its output in blocks.
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            # Its own process group: child processes are ended with it, and Ctrl-C reaches this program only.
            start_new_session=True,
        )
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._lines: Queue[bytes | None] = Queue()
        self._last_words: deque[str] = deque(maxlen=_ERROR_LINES)
        self._to_write: Queue[bytes | None] = Queue()
        # The threads hold pipes and queues, never this object: otherwise it could not be freed while they run.
        _start_thread(_write_lines, self._process.stdin, self._to_write)
        _start_thread(_read_lines, self._process.stdout, self._lines)
        self._listening = _start_thread(_read_error_lines, self._process.stderr, self._last_words)
        self._finalizer = weakref.finalize(self, _end_process, self._process, self._to_write)

    def write(self, lines: Sequence[bytes]) -> None:
        """Queue lines to be written as fast as the process reads them."""
        self._to_write.put(b"".join(line + b"\n" for line in lines))

    def read(self, timeout: float) -> bytes | None:
        """Return the next line of the output, or None at its end; `OutputTimeout` after `timeout`
        seconds."""
        try:
            return self._lines.get(timeout=timeout)
        except Empty:
            raise OutputTimeout from None

    def exit_summary(self) -> str:
        """Return one line with how the process ended and the last line of its stderr."""
        try:
            code = self._process.wait(GRACE)
            self._listening.join(GRACE)
        except subprocess.TimeoutExpired:
            return "closed its output"
        how = f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"
        words = " | ".join(self._last_words)
        return f"{how}: {words[-300:]}" if words else f"{how} and wrote nothing to stderr"

    def close(self) -> None:
        """End the process and its child processes."""
        self._finalizer()


def _start_thread(work: Callable[..., None], *arguments: object) -> Thread:
    thread = Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


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


def _read_error_lines(pipe: IO[bytes], words: deque[str]) -> None:
    with pipe:
        for line in pipe:
            if text := " ".join(line.decode("utf-8", "replace").split()):
                words.append(text)


def _end_process(process: subprocess.Popen[bytes], to_write: Queue[bytes | None]) -> None:
    """Wait for the process to exit, then terminate it, then kill it, with a delay before each step. Its child processes
    are killed without a delay."""
    to_write.put(None)
    for hard in (False, True):
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        _send_signal(process, hard)
    process.wait()


def _send_signal(process: subprocess.Popen[bytes], hard: bool) -> None:
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL if hard else signal.SIGTERM)
    elif hard:
        process.kill()
    else:
        process.terminate()
