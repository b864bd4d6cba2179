"""An unfinished run: finished jobs are stored, and a killed run resumes where it stopped.

plan.json                        the description of the run
shards/seed-0/<job>/*.arrow      predictions (shards.py)
shards/seed-0/<job>.json         a finished job: one model, trained (or not), with all its predictions
shards/seed-0.json               a finished seed
"""

from __future__ import annotations

import io
import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import tomli_w
from filelock import FileLock

from ...core.canonical import to_canonical_json
from ...core.clock import get_utc_now
from ...core.documents import read_json, read_toml
from ...core.errors import BadRun, FarshiftError
from ...core.files import get_lock_path, hold_lock, translate_os_errors, try_lock, write_atomically
from ...core.progress import log_message
from ...core.text import format_count
from ...core.world import SINGLE_PROCESS, World
from ..model import Task
from .predictions import add_run_columns, sort_by_row_id
from .run import FORMAT, Run, compute_card_digest, describe_environment, read_run
from .shards import (
    ADVICE,
    Job,
    compute_candidate_key,
    discard_folder,
    discard_useless,
    get_card_path,
    is_complete,
    list_shards,
    parse_row_range,
    read_job_card,
    read_shard,
)

if TYPE_CHECKING:
    import pyarrow as pa


NOTHING: Mapping[str, Any] = MappingProxyType({})

_LEADER = "leader"
_STALE_SECONDS = 3600.0
"""Seconds after which a process stops waiting for other processes of a world that make no progress."""


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
        begins, the others join it."""
        plan = json.loads(to_canonical_json(plan))
        if world.rank > 0:
            yield _join_run(cls(path, plan), world)
            return
        with translate_os_errors(path, ADVICE):
            path.mkdir(parents=True, exist_ok=True)
        with hold_lock(get_lock_path(path), str(path)):
            folder = cls(path, plan)
            (path / _LEADER).unlink(missing_ok=True)
            if (path / "run.toml").exists():
                folder.run = _read_finished_run(path, plan)
                folder._tidy()
                log_message(f"{path} already has this run, finished: nothing to do")
            else:
                discard_useless(path / "shards")
                folder._resume()
                folder.log("begun", {"seeds": plan["seeds"]})
            if world.size > 1:
                write_atomically(path / _LEADER, world.launch.encode(), ADVICE)
            try:
                yield folder
            finally:
                (path / _LEADER).unlink(missing_ok=True)

    def _resume(self) -> None:
        """Write the plan into the folder."""
        here = self.path / "plan.json"
        if here.exists():
            try:
                begun = read_json(here)
            except ValueError as error:
                raise BadRun(f"{here} cannot be read: remove {self.path} or choose another --out") from error
            if begun != self.plan:
                _replace_plan(self.path, begun, self.plan)
            return
        for leftover in self.path.glob(".plan.json.*.tmp"):  # left by a process that was killed while starting
            leftover.unlink()
        foreign = sorted(item.name for item in self.path.iterdir())
        if foreign:
            raise BadRun(f"{self.path} is not empty (it has {foreign[0]}): choose another --out")
        write_atomically(here, to_canonical_json(self.plan), ADVICE)

    def missing(self) -> list[int]:
        """The seeds that are not finished."""
        return [] if self.run is not None else [seed for seed in self.plan["seeds"] if self._seed_card(seed) is None]

    def job(self, seed: int, name: str, task: Task, fold: bool = False) -> Job:
        """Return the job `name` of a seed; `fold` for one that only serves a selection rule."""
        return Job(self.path / "shards" / f"seed-{seed}" / name, seed, task, fold)

    def finish_job(self, job: Job, spent: dict[str, Any], touched: list[str]) -> None:
        """Mark a job as done, once the other processes of this world have done their share of it."""
        _wait_until_ready(job.is_covered, self.path, "the predictions of the other processes")
        job.finish(spent, touched)

    def finish_seed(self, seed: int, jobs: list[Job]) -> None:
        """Mark all jobs of a seed as done."""
        cards = [read_job_card(get_card_path(job.path)) for job in jobs]
        content = json.dumps({"seed": seed, "jobs": cards}).encode()
        write_atomically(self.path / "shards" / f"seed-{seed}.json", content, ADVICE)
        spent = sum_job_usage([card for card in cards if card is not None])
        # The remarks of a model may have any key, also `seed` or `event`.
        self.log("seed done", spent | {"seed": seed})

    def _seed_card(self, seed: int) -> dict[str, Any] | None:
        """Return the card of a finished seed, if all shards that it lists exist and are complete."""
        card = read_job_card(self.path / "shards" / f"seed-{seed}.json")
        if card is None:
            return None
        here = self.path / "shards" / f"seed-{seed}"
        return (
            card
            if all(is_complete(here / job["job"] / name) for job in card["jobs"] for name in job["shards"])
            else None
        )

    def log(self, event: str, facts: Mapping[str, Any] = NOTHING) -> None:
        """Append one line to log.jsonl."""
        line = json.dumps({**facts, "time": get_utc_now(), "event": event}) + "\n"
        with translate_os_errors(self.path, ADVICE), (self.path / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(line)

    def wait_for_finish(self) -> Run:
        """Wait, in a process that joined, until the first one has finished the run."""
        _wait_until_ready(lambda: (self.path / "run.toml").exists(), self.path, "the run to be finished")
        return read_run(self.path)

    def finish(self) -> Run:
        """Merge the shards, write run.toml last, and remove what is no longer needed."""
        if self.run is not None:
            return self.run
        cards = {seed: self._seed_card(seed) for seed in self.plan["seeds"]}
        absent = [seed for seed, card in cards.items() if card is None]
        if absent:
            raise BadRun(f"{self.path}: seeds {absent} are not finished")
        jobs = {seed: card["jobs"] for seed, card in cards.items() if card is not None}
        candidates, finals = list_candidates(jobs, self.path)
        content = encode_parquet(merge_shards(self.path / "shards", jobs, candidates))
        write_atomically(self.path / "predictions.parquet", content, ADVICE)
        self.log("finished")
        spent = {f"seed_{seed}": sum_job_usage(done) for seed, done in jobs.items()}
        touched = sorted({name for done in jobs.values() for job in done for name in job["touched"]})
        card: dict[str, Any] = {
            "format": FORMAT,
            "benchmark": self.plan["benchmark"],
            "model": self.plan["model"] | {"candidates": candidates, "finals": finals},
            "budget": self.plan["budget"] | {"seeds": self.plan["seeds"]},
            "environment": describe_environment(),
            "spent": {
                "finished": get_utc_now(),
                "seconds": round(sum(float(item.get(name, 0)) for item in spent.values() for name in _SECONDS), 3),
                "touched": touched,
                "by_seed": spent,
            },
            "digests": {"predictions": sha256(content).hexdigest()},
        }
        card["digests"]["run"] = compute_card_digest(card)
        write_atomically(self.path / "run.toml", tomli_w.dumps(card).encode(), ADVICE)
        self._tidy()
        return read_run(self.path)

    def _tidy(self) -> None:
        """Remove the files that a finished run no longer needs, and those left by killed processes."""
        for folder in ("shards", ".shards.gone"):
            shutil.rmtree(self.path / folder, ignore_errors=True)
        (self.path / "plan.json").unlink(missing_ok=True)
        for name in ("plan.json", "predictions.parquet", "run.toml"):
            for leftover in self.path.glob(f".{name}.*.tmp"):
                leftover.unlink(missing_ok=True)


def _join_run(folder: RunFolder, world: World) -> RunFolder:
    """Wait for the folder that the first process of this launch begins (or has already finished)."""
    leader, card = folder.path / _LEADER, folder.path / "run.toml"

    def begun() -> bool:
        if card.exists():
            return True
        # The lock distinguishes a running first process from the files of a killed one.
        try:
            return leader.read_text("utf-8") == world.launch and is_locked(folder.path)
        except OSError:
            return False

    _wait_until_ready(begun, folder.path, "the first process of this launch to begin the run")
    if card.exists():
        folder.run = _read_finished_run(folder.path, folder.plan)
    return folder


def is_locked(path: Path) -> bool:
    """Whether a process holds a run folder's lock, so that the run is in progress."""
    lock = FileLock(f"{get_lock_path(path)}.lock")
    free = try_lock(lock)
    if free:
        lock.release()
    return not free


def _wait_until_ready(ready: Any, path: Path, what: str) -> None:
    """Wait for other processes; raise `BadRun` if nothing in the folder has changed for an hour."""
    since, seen = time.monotonic(), -1
    while not ready():
        shards = len(list_shards(path / "shards"))
        if shards != seen:
            since, seen = time.monotonic(), shards
        if time.monotonic() - since > _STALE_SECONDS:
            raise BadRun(f"{path}: waited an hour for {what} without progress: see the other processes' output")
        time.sleep(0.05)


def read_stated_identity(path: Path) -> str:
    """Return the entry identity with which the run in a folder was begun; empty if it cannot be read."""
    for name, read in (("run.toml", read_toml), ("plan.json", read_json)):
        try:
            return str(read(path / name)["benchmark"]["entry_identity"])
        except (OSError, FarshiftError, KeyError, TypeError):  # resuming the folder reports what is wrong with it
            continue
    return ""


def _read_finished_run(path: Path, plan: dict[str, Any]) -> Run:
    """Return the finished run in a folder, if it is the run of this plan."""
    run = read_run(path)
    card = run.card.to_dict()
    model = {key: value for key, value in card["model"].items() if key in plan["model"]}
    done = {"benchmark": card["benchmark"], "model": model, "budget": card["budget"]}
    planned = {
        "benchmark": plan["benchmark"],
        "model": plan["model"],
        "budget": plan["budget"] | {"seeds": plan["seeds"]},
    }
    differing = _compare_plans(done, planned)
    if differing:
        raise BadRun(f"{path} has a finished run (other {differing}), which cannot be changed: choose another --out")
    return run


def _replace_plan(path: Path, begun: dict[str, Any], plan: dict[str, Any]) -> None:
    """Replace a plan without stored predictions by a new one; else raise `BadRun`."""
    shards = path / "shards"
    done = len(list(shards.glob("seed-*.json")))
    answers = sum(stop - start for start, stop in map(parse_row_range, list_shards(shards)))
    if done or answers:
        existing = f"{format_count(done, 'seed')} done" if done else f"{format_count(answers, 'prediction')} stored"
        raise BadRun(
            f"{path} has an unfinished run of another plan ({existing}; other {_compare_plans(begun, plan)}): "
            "choose another --out or remove it"
        )
    if shards.exists():
        discard_folder(shards)
    write_atomically(path / "plan.json", to_canonical_json(plan), ADVICE)


def _compare_plans(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return the differences between two plans, by name: `model code`, `seeds` .."""
    names = []
    for key in sorted({*old, *new}):
        a, b = old.get(key), new.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            names += [f"{key} {name}" for name in sorted({*a, *b}) if a.get(name) != b.get(name)]
        elif a != b:
            names.append(key)
    return ", ".join(names)


Jobs = dict[int, list[dict[str, Any]]]
"""The cards of each seed's jobs (shards.py), in order."""


def merge_shards(shards: Path, jobs: Jobs, candidates: list[str]) -> pa.Table:
    """Merge all shards into one table, ordered by seed, part, candidate and row id, independent of which process wrote
    them. Class probabilities are included if every row of every candidate has them."""
    import pyarrow as pa

    tables_by_key: dict[tuple[int, str, int], list[pa.Table]] = {}
    for seed, done in jobs.items():
        for job in done:
            numbers = {compute_candidate_key(name): candidates.index(name) for name in job["candidates"]}
            for name in job["shards"]:
                part, key, *_ = name.split(".")
                table = read_shard(shards / f"seed-{seed}" / job["job"] / name)
                sort_key = (seed, part, numbers[key])
                tables_by_key.setdefault(sort_key, []).append(table)
    tables = [
        add_run_columns(
            sort_by_row_id(pa.concat_tables(pieces, promote_options="default")), part, seed, candidates[number]
        )
        for (seed, part, number), pieces in sorted(tables_by_key.items(), key=lambda item: item[0])
    ]
    if not all("scores" in table.column_names and not table["scores"].null_count for table in tables):
        tables = [table.drop_columns([n for n in table.column_names if n == "scores"]) for table in tables]
    return pa.concat_tables(tables)


def list_candidates(jobs: Jobs, path: Path) -> tuple[list[str], list[str]]:
    """List all candidates, and each setting's last one, in order; `BadRun` if they differ between seeds."""
    names_by_seed = {
        seed: (
            [name for job in done for name in job["candidates"] if not job["fold"]],
            [job["candidates"][-1] for job in done if not job["fold"]],
        )
        for seed, done in jobs.items()
    }
    first = next(iter(names_by_seed.values()))
    for seed, names in names_by_seed.items():
        if names != first:
            raise BadRun(
                f"{path}: seed {seed} has the candidates {', '.join(names[0])}, but another seed has "
                f"{', '.join(first[0])}: a model must use the same checkpoint names for every seed"
            )
    return first


def sum_job_usage(cards: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum a seed's usage over its jobs: seconds and steps are added, for other remarks the last value is used."""
    usage: dict[str, Any] = {}
    for card in cards:
        for key, value in card["spent"].items():
            adds = key in _ADDED and all(isinstance(number, int | float) for number in (value, usage.get(key)))
            usage[key] = round(usage[key] + value, 3) if adds else value
    return usage


_SECONDS = ("fit_seconds", "predict_seconds")
_ADDED = (*_SECONDS, "steps", "epochs")


def encode_parquet(table: pa.Table) -> bytes:
    """Encode a table as a Parquet file; the bytes do not depend on the table's chunks."""
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    # Combine chunks: the page boundaries of a Parquet file depend on them.
    pq.write_table(table.combine_chunks(), sink, compression="zstd")
    return sink.getvalue()
