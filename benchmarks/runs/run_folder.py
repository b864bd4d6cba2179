"""An unfinished run: finished jobs are stored, and a killed run resumes where it stopped.

plan.json                        the description of the run
shards/seed-0/<job>/*.arrow      predictions
shards/seed-0/<job>.json         a finished job: one model of a seed (one setting, or one fold of a selection rule),
                                 trained (or not), with all its predictions
shards/seed-0.json               a finished seed

A shard is written atomically and named `<part>.<candidate's key>.<start>-<stop>.<head of its sha256>.arrow`, with
positions in prediction order.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from ...core.canonical import to_canonical_json
from ...core.clock import get_utc_now
from ...core.documents import read_json
from ...core.errors import BadRun
from ...core.files import OUT_ADVICE, get_lock_path, hold_lock, translate_os_errors, try_hold_lock, write_atomically
from ...core.progress import log_message
from ...core.text import format_count
from ...core.world import SINGLE_PROCESS, World
from ..answers import Answers
from ..model import Task
from ..model_inputs.rows import ModelRows
from .predictions import add_outputs, add_run_columns, concatenate_answers, make_answers_table, sort_by_row_id
from .run import FORMAT, Run, compute_card_digest, describe_environment, read_run

if TYPE_CHECKING:
    import pyarrow as pa

NOTHING: Mapping[str, Any] = MappingProxyType({})

FLUSH_SECONDS = 5.0
FLUSH_ROWS = 262_144
_TRAINED = "trained"
"""A file that marks a job whose model was trained, so that another process cannot complete its predictions."""
_LEADER = "leader"
_STALE_SECONDS = 3600.0
"""Seconds after which a process stops waiting for other processes of a world that make no progress."""


class Job:
    """One model of a seed: trained (or not), with predictions of all its candidates. fold: it only serves a selection
    rule."""

    def __init__(self, path: Path, seed: int, task: Task, fold: bool = False) -> None:
        self.path, self.seed, self.task, self.fold = path, seed, task, fold
        self.candidates: list[str] = []
        self._requests: list[tuple[str, ModelRows]] = []

    def is_done(self) -> bool:
        return _is_job_done(self.path)

    def answered(self) -> list[str]:
        """The candidates that predicted, in order, here or in the process that finished the job."""
        card = _read_card(_get_card_path(self.path))
        return list(card["candidates"]) if card else self.candidates

    def mark_trained(self) -> None:
        """Mark that the following predictions are from a model that was trained here."""
        write_atomically(self.path / _TRAINED, b"", OUT_ADVICE)

    def asks(self, candidate: str, inputs: ModelRows) -> None:
        """Record that a candidate must predict these rows."""
        if candidate not in self.candidates:
            self.candidates.append(candidate)
        self._requests.append((candidate, inputs))

    def covered(self, candidate: str, inputs: ModelRows) -> NDArray[np.bool_]:
        """Return which rows have a prediction of the candidate, in prediction order, shape (n,). A damaged shard is
        removed and does not count."""
        covered = np.zeros(len(inputs), bool)
        for shard in self._shards(candidate, inputs.name):
            if _is_complete(shard):
                covered[slice(*parse_row_range(shard))] = True
            else:
                shard.unlink(missing_ok=True)
        return covered

    def is_covered(self) -> bool:
        """Whether all recorded rows have predictions, from this process or others."""
        return all(self.covered(candidate, inputs).all() for candidate, inputs in self._requests)

    def _shards(self, candidate: str, part: str) -> list[Path]:
        return sorted(self.path.glob(f"{part}.{_make_key(candidate)}.*.arrow"))

    def finish(self, spent: dict[str, Any], touched: list[str]) -> None:
        """Write the job's card: its candidates, shards and usage."""
        shards = {path.name for candidate, inputs in self._requests for path in self._shards(candidate, inputs.name)}
        card = {"job": self.path.name, "fold": self.fold, "candidates": self.candidates, "shards": sorted(shards)}
        content = json.dumps(card | {"spent": spent, "touched": touched}).encode()
        write_atomically(_get_card_path(self.path), content, OUT_ADVICE)


class Shard:
    """Predictions to be stored: written every few seconds, and when the context ends, with or without an error.

    With `in_one` nothing is written unless every row has a prediction."""

    def __init__(self, job: Job, candidate: str, inputs: ModelRows, in_one: bool = False) -> None:
        self.inputs = inputs
        self._job, self._candidate, self._in_one = job, candidate, in_one
        self._pending: list[tuple[int, int, NDArray[np.uint64], Answers]] = []
        self._rows, self._flushed = 0, time.monotonic()

    def add(self, start: int, stop: int, row_ids: NDArray[np.uint64], answers: Answers) -> None:
        """Add the predictions of the rows at [start, stop) in prediction order."""
        if self._pending and self._pending[-1][1] != start:
            self._flush()
        self._pending.append((start, stop, row_ids, answers))
        self._rows += stop - start
        full = self._rows >= FLUSH_ROWS or time.monotonic() - self._flushed > FLUSH_SECONDS
        if full and not self._in_one:
            self._flush()

    def add_outputs(self, row_ids: Sequence[int], texts: Sequence[str | None]) -> None:
        """Store the raw texts of rows beside the run's other files."""
        named: dict[str, str | int] = {"part": self.inputs.name, "seed": self._job.seed, "candidate": self._candidate}
        add_outputs(self._job.path.parents[2], named, row_ids, texts)

    def __enter__(self) -> Shard:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._in_one or self._rows == len(self.inputs):
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            start, stop = self._pending[0][0], self._pending[-1][1]
            ids = np.concatenate([row_ids for _, _, row_ids, _ in self._pending])
            answers = concatenate_answers([answers for *_, answers in self._pending])
            content = _encode_arrow(make_answers_table(ids, answers, self._job.task))
            digest = sha256(content).hexdigest()[:16]
            name = f"{self.inputs.name}.{_make_key(self._candidate)}.{start}-{stop}.{digest}.arrow"
            write_atomically(self._job.path / name, content, OUT_ADVICE)
        self._pending, self._rows, self._flushed = [], 0, time.monotonic()


class RunFolder:
    """An unfinished run. Finished seeds are stored; other processes may add theirs."""

    def __init__(self, path: Path, plan: dict[str, Any]) -> None:
        self.path, self.plan = path, plan
        self.run: Run | None = None

    @classmethod
    @contextmanager
    def begin(cls, path: Path, plan: dict[str, Any], world: World = SINGLE_PROCESS) -> Iterator[RunFolder]:
        """Start a run, or resume one of the same plan, and hold its lock within the context. A finished run of the same
        plan is returned; a folder with other content raises `BadRun`. In a world of several processes the first one
        begins, the others wait for it."""
        folder = cls(path, json.loads(to_canonical_json(plan)))
        leader = path / _LEADER
        if world.rank > 0:

            def has_begun() -> bool:
                # The lock distinguishes a running first process from the files of a killed one.
                try:
                    own = leader.read_text("utf-8") == world.launch and is_locked(path)
                except OSError:
                    own = False
                return own or (path / "run.toml").exists()

            _wait_until_ready(has_begun, path, "the first process of this launch to begin the run")
        with translate_os_errors(path, OUT_ADVICE):
            path.mkdir(parents=True, exist_ok=True)
        with hold_lock(get_lock_path(path), str(path)) if world.rank == 0 else nullcontext():
            if (path / "run.toml").exists():
                folder.run = _read_finished_run(path, folder.plan)
            if world.rank == 0:
                leader.unlink(missing_ok=True)
                folder._resume()
                if world.size > 1:
                    write_atomically(leader, world.launch.encode(), OUT_ADVICE)
            try:
                yield folder
            finally:
                if world.rank == 0:
                    leader.unlink(missing_ok=True)

    def _resume(self) -> None:
        """Write the plan into the folder, and remove what cannot be completed."""
        if self.run is not None:
            self._tidy()
            log_message(f"{self.path} already has this run, finished: nothing to do")
            return
        _discard_useless_jobs(self.path / "shards")
        here = self.path / "plan.json"
        if here.exists():
            try:
                begun = read_json(here)
            except ValueError as error:
                raise BadRun(f"{here} cannot be read: remove {self.path} or {OUT_ADVICE}") from error
            if begun != self.plan:
                _discard_other_plan(self.path, begun, self.plan)
        else:
            for leftover in self.path.glob(".plan.json.*.tmp"):  # left by a process that was killed while starting
                leftover.unlink()
            if foreign := sorted(item.name for item in self.path.iterdir()):
                raise BadRun(f"{self.path} is not empty (it has {foreign[0]}): {OUT_ADVICE}")
        write_atomically(here, to_canonical_json(self.plan), OUT_ADVICE)
        self.log("begun", {"seeds": self.plan["seeds"]})

    def missing(self) -> list[int]:
        """The seeds that are not finished."""
        return [] if self.run is not None else [seed for seed in self.plan["seeds"] if self._list_jobs(seed) is None]

    def job(self, seed: int, name: str, task: Task, fold: bool = False) -> Job:
        """Return the job `name` of a seed; `fold` for one that only serves a selection rule."""
        return Job(self.path / "shards" / f"seed-{seed}" / name, seed, task, fold)

    def finish_job(self, job: Job, spent: dict[str, Any], touched: list[str]) -> None:
        """Mark a job as done, once the other processes of this world have done their share of it."""
        _wait_until_ready(job.is_covered, self.path, "the predictions of the other processes")
        job.finish(spent, touched)

    def finish_seed(self, seed: int, jobs: list[Job]) -> None:
        """Mark all jobs of a seed as done."""
        cards = [card for job in jobs if (card := _read_card(_get_card_path(job.path))) is not None]
        content = json.dumps({"seed": seed, "jobs": cards}).encode()
        write_atomically(self.path / "shards" / f"seed-{seed}.json", content, OUT_ADVICE)
        # The remarks of a model may have any key, also `seed` or `event`.
        self.log("seed done", _sum_usage(cards) | {"seed": seed})

    def _list_jobs(self, seed: int) -> list[dict[str, Any]] | None:
        """Return the cards of a finished seed's jobs, if all their shards are complete."""
        folder = self.path / "shards" / f"seed-{seed}"
        card = _read_card(folder.with_suffix(".json"))
        jobs = card["jobs"] if card else []
        complete = all(_is_complete(folder / job["job"] / name) for job in jobs for name in job["shards"])
        return jobs if card and complete else None

    def log(self, event: str, facts: Mapping[str, Any] = NOTHING) -> None:
        """Append one line to log.jsonl."""
        line = json.dumps({**facts, "time": get_utc_now(), "event": event}) + "\n"
        with translate_os_errors(self.path, OUT_ADVICE), (self.path / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(line)

    def finish(self, world: World = SINGLE_PROCESS) -> Run:
        """Merge the shards, write run.toml last, and remove what is no longer needed. The first process of a world does
        it while the others wait."""
        if world.rank > 0:
            _wait_until_ready(lambda: (self.path / "run.toml").exists(), self.path, "the run to be finished")
            return read_run(self.path)
        if self.run is not None:
            return self.run
        jobs = {seed: done for seed in self.plan["seeds"] if (done := self._list_jobs(seed)) is not None}
        if absent := [seed for seed in self.plan["seeds"] if seed not in jobs]:
            raise BadRun(f"{self.path}: seeds {absent} are not finished")
        candidates, finals = _list_candidates(jobs, self.path)
        content = encode_parquet(_merge_shards(self.path / "shards", jobs, candidates))
        write_atomically(self.path / "predictions.parquet", content, OUT_ADVICE)
        self.log("finished")
        spent = {f"seed_{seed}": _sum_usage(done) for seed, done in jobs.items()}
        card: dict[str, Any] = {
            "format": FORMAT,
            "benchmark": self.plan["benchmark"],
            "model": self.plan["model"] | {"candidates": candidates, "finals": finals},
            "budget": self.plan["budget"] | {"seeds": self.plan["seeds"]},
            "environment": describe_environment(),
            "spent": {
                "finished": get_utc_now(),
                "seconds": round(sum(float(item.get(name, 0)) for item in spent.values() for name in SECONDS), 3),
                "touched": sorted({name for done in jobs.values() for job in done for name in job["touched"]}),
                "by_seed": spent,
            },
            "digests": {"predictions": sha256(content).hexdigest()},
        }
        card["digests"]["run"] = compute_card_digest(card)
        write_atomically(self.path / "run.toml", tomli_w.dumps(card).encode(), OUT_ADVICE)
        self._tidy()
        return read_run(self.path)

    def _tidy(self) -> None:
        """Remove the files that a finished run no longer needs, and those left by killed processes."""
        for folder in ("shards", ".shards.gone"):
            shutil.rmtree(self.path / folder, ignore_errors=True)
        for pattern in ("plan.json", ".plan.json.*.tmp", ".predictions.parquet.*.tmp", ".run.toml.*.tmp"):
            for leftover in self.path.glob(pattern):
                leftover.unlink(missing_ok=True)


def is_locked(path: Path) -> bool:
    """Whether a process holds a run folder's lock, so that the run is in progress."""
    with try_hold_lock(get_lock_path(path)) as free:
        return not free


def list_shards(folder: Path) -> list[Path]:
    """List the shards anywhere in a folder, sorted; fewer if another process removes the folder meanwhile."""
    shards: list[Path] = []
    for root, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith(".")]  # being removed (`discard_folder`)
        shards += [Path(root) / name for name in names if name.endswith(".arrow")]
    return sorted(shards)


def parse_row_range(shard: Path) -> tuple[int, int]:
    """Return the rows [start, stop) in prediction order of a shard, from its name."""
    start, stop = map(int, shard.name.split(".")[2].split("-"))
    return start, stop


def discard_folder(folder: Path) -> None:
    """Remove a folder atomically: a process that is killed meanwhile leaves no part of it visible."""
    gone = folder.with_name(f".{folder.name}.gone")
    shutil.rmtree(gone, ignore_errors=True)
    folder.rename(gone)
    shutil.rmtree(gone)


def encode_parquet(table: pa.Table) -> bytes:
    """Encode a table as a Parquet file; the bytes do not depend on the table's chunks."""
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    # Combine chunks: the page boundaries of a Parquet file depend on them.
    pq.write_table(table.combine_chunks(), sink, compression="zstd")
    return sink.getvalue()


def _encode_arrow(table: pa.Table) -> memoryview:
    """Encode the table as an uncompressed Arrow file, which is fast, since a model is waiting."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


def _make_key(candidate: str) -> str:
    """A candidate in the names of its shards. It depends on the name only, so that a model made by a later process may
    list its candidates in another order."""
    return sha256(candidate.encode()).hexdigest()[:12]


def _is_complete(shard: Path) -> bool:
    """Whether a shard matches the digest in its name."""
    try:
        return sha256(shard.read_bytes()).hexdigest()[:16] == shard.name.split(".")[3]
    except (OSError, IndexError):
        return False


def _get_card_path(job: Path) -> Path:
    return job.with_name(f"{job.name}.json")


def _read_card(path: Path) -> dict[str, Any] | None:
    """Read the card of a job or seed; None if it is missing or unreadable."""
    try:
        card: dict[str, Any] = read_json(path, dict)
    except (OSError, ValueError):
        return None
    return card


def _is_job_done(job: Path) -> bool:
    card = _read_card(_get_card_path(job))
    return card is not None and all(_is_complete(job / name) for name in card["shards"])


def _discard_useless_jobs(shards: Path) -> None:
    """Remove incomplete or damaged jobs of trained models: repeated training may not give the same model, so their
    predictions cannot be completed."""
    for marker in sorted(shards.glob(f"*/[!.]*/{_TRAINED}")):
        if not _is_job_done(marker.parent):
            _get_card_path(marker.parent).unlink(missing_ok=True)
            discard_folder(marker.parent)


def _wait_until_ready(ready: Callable[[], bool], path: Path, what: str) -> None:
    """Wait for other processes; raise `BadRun` if nothing in the folder has changed for an hour."""
    since, seen = time.monotonic(), -1
    while not ready():
        shards = len(list_shards(path / "shards"))
        if shards != seen:
            since, seen = time.monotonic(), shards
        if time.monotonic() - since > _STALE_SECONDS:
            raise BadRun(f"{path}: waited an hour for {what} without progress: see the other processes' output")
        time.sleep(0.05)


def _read_finished_run(path: Path, plan: dict[str, Any]) -> Run:
    """Return the finished run in a folder, if it is the run of this plan."""
    run = read_run(path)
    card = run.card.to_dict()
    model = {key: value for key, value in card["model"].items() if key not in ("candidates", "finals")}
    done = {"benchmark": card["benchmark"], "model": model, "budget": card["budget"]}
    planned = {key: plan[key] for key in ("benchmark", "model")} | {"budget": plan["budget"] | {"seeds": plan["seeds"]}}
    if differing := _compare_plans(done, planned):
        raise BadRun(
            f"{path} has a finished run of another request ({differing}), which cannot be changed: {OUT_ADVICE}"
        )
    return run


def _discard_other_plan(path: Path, begun: dict[str, Any], plan: dict[str, Any]) -> None:
    """Discard an unfinished run of another plan; `BadRun` if it has predictions."""
    shards = path / "shards"
    done = len(list(shards.glob("seed-*.json")))
    answers = sum(stop - start for start, stop in map(parse_row_range, list_shards(shards)))
    if done or answers:
        existing = f"{format_count(done, 'seed')} done" if done else f"{format_count(answers, 'prediction')} stored"
        raise BadRun(
            f"{path} has an unfinished run of another request ({existing}; {_compare_plans(begun, plan)}): "
            f"{OUT_ADVICE} or remove it"
        )
    if shards.exists():
        discard_folder(shards)


def _compare_plans(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Describe how a new plan differs from an old one: `other model code`, `budget name full, now quick` .."""
    differing: dict[str, tuple[Any, Any]] = {}
    for key in sorted({*old, *new}):
        a, b = old.get(key), new.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            differing |= {f"{key} {name}": (a.get(name), b.get(name)) for name in sorted({*a, *b})}
        else:
            differing[key] = (a, b)
    differing = {name: (a, b) for name, (a, b) in differing.items() if a != b}
    causes = differing.keys() - {"benchmark entry_identity", "benchmark protocol_seeds"}  # what follows from the others
    return ", ".join(_describe_change(name, *ends) for name, ends in differing.items() if name in causes or not causes)


def _describe_change(name: str, old: Any, new: Any) -> str:
    ends = ["none" if end is None else f"{end}" for end in (old, new)]
    short = all(len(end) <= 30 and not isinstance(value, dict) for end, value in zip(ends, (old, new), strict=True))
    return f"{name} {ends[0]}, now {ends[1]}" if short else f"other {name}"


_Jobs = dict[int, list[dict[str, Any]]]
"""The cards of each seed's jobs, in order."""


def _merge_shards(shards: Path, jobs: _Jobs, candidates: list[str]) -> pa.Table:
    """Merge all shards into one table, ordered by seed, part, candidate and row id, independent of which process wrote
    them. Class probabilities are included if every row of every candidate has them."""
    import pyarrow as pa

    pieces: dict[tuple[int, str, int], list[pa.Table]] = {}
    for seed, done in jobs.items():
        for job in done:
            numbers = {_make_key(name): candidates.index(name) for name in job["candidates"]}
            for name in job["shards"]:
                part, key, *_ = name.split(".")
                shard = pa.ipc.open_file(shards / f"seed-{seed}" / job["job"] / name).read_all()
                pieces.setdefault((seed, part, numbers[key]), []).append(shard)
    tables = []
    for (seed, part, number), some in sorted(pieces.items(), key=lambda item: item[0]):
        table = sort_by_row_id(pa.concat_tables(some, promote_options="default"))
        tables.append(add_run_columns(table, part, seed, candidates[number]))
    if not all("scores" in table.column_names and not table["scores"].null_count for table in tables):
        tables = [table.drop_columns([n for n in table.column_names if n == "scores"]) for table in tables]
    return pa.concat_tables(tables)


def _list_candidates(jobs: _Jobs, path: Path) -> tuple[list[str], list[str]]:
    """List all candidates, and each setting's last one, in order; `BadRun` if they differ between seeds."""
    first: tuple[list[str], list[str]] | None = None
    for seed, done in jobs.items():
        own = [job["candidates"] for job in done if not job["fold"]]
        names = [name for some in own for name in some], [some[-1] for some in own]
        first = first or names
        if names != first:
            raise BadRun(
                f"{path}: seed {seed} has the candidates {', '.join(names[0])}, but another seed has "
                f"{', '.join(first[0])}: a model must use the same checkpoint names for every seed"
            )
    assert first is not None
    return first


SECONDS = ("fit_seconds", "predict_seconds")
_ADDED = (*SECONDS, "steps", "epochs")


def _sum_usage(cards: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum a seed's usage over its jobs: seconds and steps are added, for other remarks the last value is used."""
    usage: dict[str, Any] = {}
    for card in cards:
        for key, value in card["spent"].items():
            adds = key in _ADDED and all(isinstance(number, int | float) for number in (value, usage.get(key)))
            usage[key] = round(usage[key] + value, 3) if adds else value
    return usage
