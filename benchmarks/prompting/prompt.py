"""The prompt for a row, and the extraction of a prediction from a language model's output.

A prompt is the instruction, k examples of the training part, and the query, joined by the separator. In the templates
of example and query `{field}` is replaced by a field's value, and `{{` and `}}` by a brace; there is no other syntax,
so that a template has access only to the fields it names. The instruction is used literally. A field with an encoded
image or recording is that file in the prompt, for models that accept files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from string import Formatter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...core.canonical import compute_identity
from ...core.draws import draw_permutation
from ...core.errors import BadDefinition
from ...loaders.batching.encoded import find_media_type
from ..definition import PromptPin
from ..extraction import Extract, load_extraction
from ..model import Columns, Task

Row = Mapping[str, Any]


@dataclass(frozen=True)
class MediaPart:
    """An encoded image or recording in a prompt. type: its media type, such as image/jpeg."""

    content: bytes
    type: str

    @cached_property
    def digest(self) -> str:
        """sha256 of the file."""
        return sha256(self.content).hexdigest()


Part: TypeAlias = "str | MediaPart"


@dataclass(frozen=True)
class Template:
    """A parsed template: alternating literal texts and fields.

    literals: one more than there are fields; the i-th field stands between literals i and i + 1.
    """

    literals: tuple[str, ...]
    fields: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, known: tuple[str, ...], where: str) -> Template:
        """Parse a template. `BadDefinition` if `text` names a field that is not `known`, or has a single brace."""
        literals, fields = [""], []
        try:
            for literal, field, spec, conversion in Formatter().parse(text):
                literals[-1] += literal
                if field is None:
                    continue
                if field not in known or spec or conversion:
                    raise BadDefinition(f"prompt: {where} names {{{field}}}, but may only name {', '.join(known)}")
                fields.append(field)
                literals.append("")
        except ValueError as error:
            raise BadDefinition(f"prompt: {where} has a single brace: write {{{{ or }}}} for a brace") from error
        return cls(tuple(literals), tuple(fields))

    def filled(self, values: Mapping[str, Part]) -> list[Part]:
        """Return the template with each field replaced by its text or file, in pieces."""
        parts: list[Part] = [self.literals[0]]
        for field, literal in zip(self.fields, self.literals[1:], strict=True):
            parts += (values[field], literal)
        return parts


@dataclass(frozen=True)
class Prompt:
    """A benchmark's prompt with its examples.

    shots: k training rows, as `draw_shots` returns them: inputs and label by name.

    Raises `BadDefinition` for an invalid template, and if the extraction is not available in the pinned version or does
    not support the task.
    """

    pin: PromptPin
    task: Task
    shots: tuple[Row, ...]

    def __post_init__(self) -> None:
        # Detect an invalid definition here, not at the first of many rows.
        _ = self._lead, self._query, self._extract

    @cached_property
    def _lead(self) -> tuple[Part, ...]:
        """The prompt before the query."""
        example = _parse_example(self.pin, self.task)
        pieces: list[Part] = [self.pin.instruction, self.pin.separator] if self.pin.instruction else []
        for shot in self.shots:
            pieces += [*example.filled(_format_fields(shot, example.fields, self.task)), self.pin.separator]
        return _join_texts(pieces)

    @cached_property
    def _query(self) -> Template:
        query = Template.parse(self.pin.query, self.task.inputs, "the query")
        if not query.fields:
            inputs = " or ".join(f"{{{name}}}" for name in self.task.inputs)
            raise BadDefinition(f"prompt: the query names no input, so that all rows get one prompt: add {inputs}")
        return query

    @cached_property
    def _extract(self) -> Extract:
        return load_extraction(self.pin.extraction.name, self.pin.extraction.version, self.task)

    @cached_property
    def signature(self) -> str:
        """The prompt's version, and a digest of all that determines the prompts and how outputs are parsed."""
        decides = {"pin": self.pin.model_dump(), "task": asdict(self.task), "lead": to_digest_form(self._lead)}
        return f"prompt@{self.pin.version}:{compute_identity(decides)[:16]}"

    def parts(self, row: Row) -> tuple[Part, ...]:
        """Return the prompt for one row, given its inputs: a text, or texts and the files between them."""
        return _join_texts([*self._lead, *self._query.filled(_format_fields(row, self._query.fields, self.task))])

    def text(self, row: Row) -> str:
        """Return the prompt for one row, given its inputs. `BadDefinition` if it has an image or recording."""
        parts = self.parts(row)
        if any(isinstance(part, MediaPart) for part in parts):
            raise BadDefinition(
                "prompt: it has images or audio, which cannot be sent as text: use a model that reads them, at an "
                "endpoint (openai:MODEL@URL) or as a command (cmd:COMMAND)"
            )
        return "".join(part for part in parts if isinstance(part, str))

    def texts(self, batch: Columns) -> list[str]:
        """Return the prompts for a batch of inputs, one per row, in order; `BadDefinition` as for `text`."""
        return [self.text(row) for row in self._rows(batch)]

    def all_parts(self, batch: Columns) -> list[tuple[Part, ...]]:
        """Return `parts` for a batch of inputs, one per row, in order."""
        return [self.parts(row) for row in self._rows(batch)]

    def _rows(self, batch: Columns) -> Iterable[Row]:
        count = len(batch[self.task.inputs[0]])
        return ({name: batch[name][row] for name in self._query.fields} for row in range(count))

    def read(self, text: str) -> str | int | float | None:
        """Extract the prediction from a model's output (up to the first stop string): a class, a number or a text,
        depending on the task; None if there is none."""
        ends = [index for stop in self.pin.stop if stop and (index := text.find(stop)) >= 0]
        return self._extract(text[: min(ends, default=len(text))], self.task)


def to_digest_form(parts: Sequence[Part]) -> str | list[Any]:
    """Convert a prompt for hashing: its text; or a list if it has files, each replaced by its digest."""
    if any(isinstance(part, MediaPart) for part in parts):
        return [part if isinstance(part, str) else {"file": part.digest} for part in parts]
    return "".join(part for part in parts if isinstance(part, str))


def draw_shots(
    pin: PromptPin, name: str, columns: Mapping[str, Any], row_ids: NDArray[np.uint64], task: Task
) -> tuple[Row, ...]:
    """Draw the k examples of a prompt: training rows by their ids, the same on every platform and in every order.

    name: the benchmark's. columns: the training part's inputs and label, of which single rows are read; row_ids: their
    ids, (n,). The returned rows have the fields that the example uses. Raises `BadDefinition` if there are fewer than k
    rows.
    """
    _check_count(pin, name, len(row_ids))
    drawn = draw_permutation(f"prompt/{name}/{pin.version}/{pin.seed}", row_ids)[: pin.k]
    fields = sorted(set(_parse_example(pin, task).fields))
    return tuple({field: columns[field][row] for field in fields} for row in drawn)


def check_prompt(pin: PromptPin, name: str, task: Task, trained: int) -> None:
    """`BadDefinition` if the prompt of the benchmark `name` cannot be made: its templates name other fields than the
    task's, its extraction does not support the task, or training has fewer rows (`trained`) than examples."""
    Prompt(pin, task, ())
    _parse_example(pin, task)
    _check_count(pin, name, trained)


def _check_count(pin: PromptPin, name: str, trained: int) -> None:
    if trained < pin.k:
        raise BadDefinition(
            f"prompt: {pin.k} examples are requested, and the training part of {name} has {trained} rows: lower its `k`"
        )


def _parse_example(pin: PromptPin, task: Task) -> Template:
    return Template.parse(pin.example, (*task.inputs, task.label), "the example")


def _join_texts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Merge adjacent texts."""
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        elif part != "":
            merged.append(part)
    return tuple(merged)


def _format_fields(row: Row, fields: tuple[str, ...], task: Task) -> dict[str, Part]:
    return {
        field: task.names[int(row[field])] if field == task.label and task.names else _format_part(row[field], field)
        for field in fields
    }


def _format_part(value: Any, field: str) -> Part:
    if isinstance(value, bytes) and (kind := find_media_type(value)).startswith(("image/", "audio/")):
        return MediaPart(value, kind)
    return _format_text(value, field)


def _format_text(value: Any, field: str) -> str:
    """Format a value: numbers in the fewest digits that read back as the same number; a vector with spaces between its
    numbers, a matrix with a line per row."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        raise BadDefinition(f"prompt: the field {field!r} is of bytes, which cannot be shown as text")
    values = np.asarray(value)
    if values.ndim:
        # Tensors of a source are float32 at most; read back from JSON they are in double precision.
        values = values.astype(np.float32) if values.dtype.kind == "f" else values
        between = " " if values.ndim == 1 else "\n" * (values.ndim - 1)
        return between.join(_format_text(part, field) for part in values)
    if values.dtype.kind == "b":
        return "true" if values else "false"
    return str(values[()])
