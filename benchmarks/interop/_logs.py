"""What other runners recorded, checked against the benchmark that they were to run, and put together as seeds."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import BadRun
from ...core.files import compute_file_sha256
from ..answers import Answers
from ..benchmark import Benchmark
from ..blind.data import load_model_inputs
from ..prompting.grading import extract_answers
from ..prompting.prompt import Prompt
from ..scoring.completeness import describe_row_id_problem
from ._sheets import iterate_prompts

_ROW_ID = re.compile(r"[0-9a-f]{16}")

Outputs = dict[int, str | None]
"""What a model said to rows, by row id; None where nothing came back."""


@dataclass(frozen=True)
class LogSample:
    """One sample of a log.

    where: file and place, for people. row_id, entry_identity: the exported sample's; whatever stands there in the log.
    sent: the texts that the model was sent, the prompt in one of them. said: the model's own text, None where none came
    back.
    """

    where: str
    row_id: Any
    entry_identity: Any
    sent: Sequence[str]
    output: str | None


@dataclass(frozen=True)
class Log:
    """What one file recorded of a pass of one model over the benchmark, or over some of its tasks.

    sitting: tells the pass from others; logs of the same one belong together. model: its name, and tool: the runner's
    with its version; both empty where the log does not say.
    """

    sitting: tuple[Any, ...]
    model: str
    tool: str
    samples: Sequence[LogSample]


@dataclass(frozen=True)
class Transcript:
    """What was said to a benchmark's rows, seed by seed. wrapped: whether a prompt was sent within something else (a
    chat template, a system message before it)."""

    seeds: list[Outputs]
    wrapped: bool


def compute_digests(files: Sequence[Path]) -> list[str]:
    """The files' sha256, in their order; `BadRun` where a file is given twice: it would pass for two seeds."""
    seen: dict[str, Path] = {}
    for path in files:
        try:
            digest = compute_file_sha256(path)
        except OSError as error:
            raise BadRun(f"{path} cannot be read: {error.strerror or error}") from error
        if digest in seen:
            raise BadRun(f"{path} is the same log as {seen[digest]}: name each log once")
        seen[digest] = path
    return list(seen)


def find_model_name(logs: Sequence[Log]) -> str:
    """The one model that the logs are of; `BadRun` where they name several, or none. Of a model in a local folder it is
    the folder's own name: a run card names no path of a disk."""
    models = sorted({log.model for log in logs} - {""})
    if not models:
        raise BadRun("the logs do not say which model they are of: give --name")
    if len(models) > 1:
        raise BadRun(
            f"these logs are of several models ({', '.join(models)}): import each on its own, or give --name where "
            "they are seeds of one"
        )
    return Path(models[0]).name if Path(models[0]).is_absolute() else models[0]


def make_transcript(benchmark: Benchmark, prompt: Prompt, logs: Sequence[Log]) -> Transcript:
    """The logs as seeds 0, 1, 2 .., each with every predicted row of the benchmark.

    Logs of one sitting belong together. Sittings are taken in the order of the files, and each goes to the first seed
    that has none of its rows: so sittings of different tasks complete one seed, and one that repeats a row begins the
    next. A row that one sitting holds several times counts as several sittings.

    Raises `BadRun` for a sample without a row id, of another benchmark, of a row that is not predicted, or that was
    sent another prompt, and for a seed that lacks rows.
    """
    expected = _list_expected_prompts(benchmark, prompt)
    identities = [*benchmark.identities("full")]  # a list: a log may hold whatever in its place
    sittings: dict[tuple[Any, ...], list[Outputs]] = {}
    wrapped = False
    for log in logs:
        own = sittings.setdefault(log.sitting, [])
        for sample in log.samples:
            row_id = _parse_row_id(sample, benchmark, identities, expected)
            wrapped |= _is_wrapped(sample, expected[row_id], benchmark)
            _find_first_without([row_id], own)[row_id] = sample.output
    seeds: list[Outputs] = []
    for outputs in (outputs for own in sittings.values() for outputs in own):
        _find_first_without(outputs, seeds).update(outputs)
    if not seeds:
        raise BadRun("there are no samples in these logs: name the logs of every sample")
    for seed, outputs in enumerate(seeds):
        _check_all_rows(seed, outputs, expected, benchmark)
    return Transcript(seeds, wrapped)


def extract_part_answers(benchmark: Benchmark, prompt: Prompt, outputs: Outputs) -> dict[str, Answers]:
    """For each predicted part the answers in what a model said, in the order of the part's rows."""
    blind = load_model_inputs(benchmark)
    rows = {name: blind.part(name).row_ids for name in benchmark.predicted_parts}
    return {name: extract_answers([outputs[int(row)] for row in ids], prompt, name, ids) for name, ids in rows.items()}


def _list_expected_prompts(benchmark: Benchmark, prompt: Prompt) -> dict[int, str]:
    """The prompt of every predicted row."""
    return {
        int(row_id): text
        for _, row_ids, texts in iterate_prompts(benchmark, prompt)
        for row_id, text in zip(row_ids, texts, strict=True)
    }


def _parse_row_id(
    sample: LogSample, benchmark: Benchmark, identities: Collection[str], expected: Mapping[int, str]
) -> int:
    if not isinstance(sample.row_id, str) or not _ROW_ID.fullmatch(sample.row_id):
        raise BadRun(f"{sample.where}, has no row id: only logs of an exported task can be imported")
    if sample.entry_identity not in identities:
        sample_identity, identity = str(sample.entry_identity)[:12], benchmark.identity("full")
        raise BadRun(
            f"{sample.where}, is of another benchmark, or of another version of it (identity {sample_identity}.., "
            "that of "
            f"{benchmark.name} is {identity[:12]}..): export it again and run that"
        )
    row_id = int(sample.row_id, 16)
    if row_id not in expected:
        raise BadRun(f"{sample.where}: {sample.row_id} is not a row that {benchmark.name} predicts: the log was edited")
    return row_id


def _is_wrapped(sample: LogSample, prompt: str, benchmark: Benchmark) -> bool:
    """Whether there is more to what the model was sent than the prompt; `BadRun` where the prompt is not in it."""
    if list(sample.sent) == [prompt]:
        return False
    if not any(prompt in text for text in sample.sent):
        raise BadRun(
            f"{sample.where}, was sent another prompt than {benchmark.name} exports: run the exported task as it is"
        )
    return True


def _find_first_without(row_ids: Iterable[int], several: list[Outputs]) -> Outputs:
    """The first of several that has none of these rows; a new one, put behind them, where each has some."""
    match = next((outputs for outputs in several if outputs.keys().isdisjoint(row_ids)), None)
    if match is None:
        match = {}
        several.append(match)
    return match


def _check_all_rows(seed: int, outputs: Outputs, expected: Mapping[int, str], benchmark: Benchmark) -> None:
    if len(outputs) < len(expected):
        got, expected_ids = (np.array(list(ids), np.uint64) for ids in (outputs, expected))
        raise BadRun(
            f"seed {seed} has {len(outputs)} of the {len(expected)} rows that {benchmark.name} predicts: "
            f"{describe_row_id_problem(got, expected_ids)}; run every exported task, without a limit, and name all "
            "its logs"
        )
