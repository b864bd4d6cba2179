"""Logs of other runners, checked against the exported benchmark and combined into seeds."""

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
from ..model_inputs.load import load_model_inputs
from ..prompting.grading import extract_answers
from ..prompting.prompt import Prompt
from ..scoring.completeness import describe_row_id_problem
from ._sheets import iterate_prompts

_ROW_ID = re.compile(r"[0-9a-f]{16}")

Outputs = dict[int, str | None]
"""A model's outputs by row id; None if there was none."""


@dataclass(frozen=True)
class LogSample:
    """One sample of a log.

    where: file and position, for messages. row_id, entry_identity: those of the exported sample, as stored in the log,
    of any type. sent: the texts sent to the model, one of which includes the prompt. said: the model's output, None if
    there was none.
    """

    where: str
    row_id: Any
    entry_identity: Any
    sent: Sequence[str]
    output: str | None


@dataclass(frozen=True)
class Log:
    """The content of one log file: one model on the benchmark, or on some of its tasks.

    sitting: identifies the session; logs with the same value belong together. model: its name, and tool: the runner
    with its version; both empty if the log does not say.
    """

    sitting: tuple[Any, ...]
    model: str
    tool: str
    samples: Sequence[LogSample]


def compute_digests(files: Sequence[Path]) -> list[str]:
    """Return the files' sha256 in order; `BadRun` if a file is given twice, which would count as two seeds."""
    seen: dict[str, Path] = {}
    for path in files:
        try:
            digest = compute_file_sha256(path)
        except OSError as error:
            raise BadRun(f"{path} cannot be read: {error.strerror or error}") from error
        if digest in seen:
            raise BadRun(f"{path} is the same log as {seen[digest]}: give each log once")
        seen[digest] = path
    return list(seen)


def find_model_name(logs: Sequence[Log]) -> str:
    """Return the model of the logs; `BadRun` if they name several models, or none. For a model in a local folder it is
    the folder's name: a run card has no paths."""
    models = sorted({log.model for log in logs} - {""})
    if not models:
        raise BadRun("the logs do not name the model: give --name")
    if len(models) > 1:
        raise BadRun(
            f"these logs are of several models ({', '.join(models)}): import each separately, or give --name if they "
            "are seeds of one"
        )
    return Path(models[0]).name if Path(models[0]).is_absolute() else models[0]


def combine_logs(benchmark: Benchmark, prompt: Prompt, logs: Sequence[Log]) -> tuple[list[Outputs], bool]:
    """Combine logs into seeds 0, 1, 2 .., each with every predicted row of the benchmark; return them, and whether a
    prompt was sent inside other text (a chat template, a system message).

    Logs of one session belong together. Sessions are processed in the order of the files, and each goes to the first
    seed that has none of its rows: sessions of different tasks complete one seed, and one that repeats a row begins the
    next. A row that occurs several times in a session counts as several sessions.

    Raises `BadRun` for a sample without a row id, of another benchmark, of a row that is not predicted, or with another
    prompt, and for a seed with missing rows.
    """
    expected = {
        int(row_id): text
        for _, row_ids, texts in iterate_prompts(benchmark, prompt)
        for row_id, text in zip(row_ids, texts, strict=True)
    }
    identities = [*benchmark.identities("full")]  # a list, since the log's value may be unhashable
    sittings: dict[tuple[Any, ...], list[Outputs]] = {}
    wrapped = False
    for log in logs:
        own = sittings.setdefault(log.sitting, [])
        for sample in log.samples:
            row_id = _parse_row_id(sample, benchmark, identities, expected)
            if list(sample.sent) != [expected[row_id]]:
                if not any(expected[row_id] in text for text in sample.sent):
                    raise BadRun(
                        f"{sample.where}, was sent another prompt than {benchmark.name} exports: run the exported "
                        "task unchanged"
                    )
                wrapped = True
            _find_first_without([row_id], own)[row_id] = sample.output
    seeds: list[Outputs] = []
    for outputs in (outputs for own in sittings.values() for outputs in own):
        _find_first_without(outputs, seeds).update(outputs)
    if not seeds:
        raise BadRun("these logs have no samples: give the logs of all samples")
    for seed, outputs in enumerate(seeds):
        if len(outputs) < len(expected):
            got, expected_ids = (np.array(list(ids), np.uint64) for ids in (outputs, expected))
            raise BadRun(
                f"seed {seed} has {len(outputs)} of the {len(expected)} rows that {benchmark.name} predicts: "
                f"{describe_row_id_problem(got, expected_ids)}; run every exported task without a limit, and give all "
                "its logs"
            )
    return seeds, wrapped


def extract_part_answers(benchmark: Benchmark, prompt: Prompt, outputs: Outputs) -> dict[str, Answers]:
    """Extract the predictions of each predicted part, in the order of the part's rows."""
    model_inputs = load_model_inputs(benchmark)
    rows = {name: model_inputs.part(name).row_ids for name in benchmark.predicted_parts}
    return {name: extract_answers([outputs[int(row)] for row in ids], prompt, name, ids) for name, ids in rows.items()}


def _parse_row_id(
    sample: LogSample, benchmark: Benchmark, identities: Collection[str], expected: Mapping[int, str]
) -> int:
    if not isinstance(sample.row_id, str) or not _ROW_ID.fullmatch(sample.row_id):
        raise BadRun(f"{sample.where}, has no row id: import only logs of an exported task")
    if sample.entry_identity not in identities:
        sample_identity, identity = str(sample.entry_identity)[:12], benchmark.identity("full")
        raise BadRun(
            f"{sample.where}, is of another benchmark, or of another version of it (identity {sample_identity}.., "
            "that of "
            f"{benchmark.name} is {identity[:12]}..): export it again and run that"
        )
    row_id = int(sample.row_id, 16)
    if row_id not in expected:
        raise BadRun(f"{sample.where}: {sample.row_id} is not a predicted row of {benchmark.name}: the log was edited")
    return row_id


def _find_first_without(row_ids: Iterable[int], several: list[Outputs]) -> Outputs:
    """Return the first transcript that has none of these rows; append a new one if each has some."""
    match = next((outputs for outputs in several if outputs.keys().isdisjoint(row_ids)), None)
    if match is None:
        match = {}
        several.append(match)
    return match
