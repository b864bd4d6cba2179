"""The run folder: what evaluating one model on one benchmark writes.

    run.toml              what was run, in which environment, what it spent, and the digests
    predictions.parquet   part, row_id, seed, candidate, prediction
    log.jsonl             what happened when

While a run is under way its finished seeds lie in `shards/`, each with its digest, and `plan.json` says what the run
is. A killed run goes on where it stopped; a finished one is immutable: its digests show any change.
"""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from ..loaders.cache import file_sha256, locked, plain_disk_errors, write_atomically
from ..splits.canonical import canonical_json, identity_of
from ..splits.errors import BadRun
from ..splits.plugins import read_toml

if TYPE_CHECKING:
    import pyarrow as pa

_FORMAT = 1
_TABLES = ("benchmark", "model", "budget", "environment", "spent", "digests")


@dataclass(frozen=True)
class Carded:
    """What a run card says, by name."""

    card: dict[str, Any]

    @property
    def entry_identity(self) -> str:
        return str(self.card["benchmark"]["entry_identity"])

    @property
    def model(self) -> str:
        return str(self.card["model"]["name"])

    @property
    def budget(self) -> str:
        return str(self.card["budget"]["name"])

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(self.card["budget"]["seeds"])

    @property
    def digest(self) -> str:
        return str(self.card["digests"]["run"])


@dataclass(frozen=True)
class Run(Carded):
    """A finished run, read and held to its digests."""

    path: Path

    @property
    def benchmark(self) -> str:
        return str(self.card["benchmark"]["name"])

    def predictions(self) -> pa.Table:
        import pyarrow.parquet as pq

        return pq.read_table(self.path / "predictions.parquet")


def read_run(path: Path | str) -> Run:
    """A finished run. Raises `BadRun` where it is not one, is unfinished, or was edited."""
    path = Path(path)
    if not (path / "run.toml").is_file():
        if (path / "plan.json").is_file():
            done = len(list((path / "shards").glob("seed-*.json")))
            raise BadRun(f"{path} is unfinished ({done} seeds done): repeat the command that began it, and it goes on")
        raise BadRun(f"{path} is not a run: it has no run.toml")
    card = read_toml(path / "run.toml")
    problem = card_problem(card)
    if problem:
        raise BadRun(f"{path / 'run.toml'}: {problem}")
    predictions = path / "predictions.parquet"
    if not predictions.is_file() or file_sha256(predictions) != card["digests"]["predictions"]:
        raise BadRun(f"{predictions} is missing or was edited: its digest is not the one in run.toml")
    return Run(card, path)


def card_problem(card: dict[str, Any]) -> str:
    """What is wrong with the content of a run.toml; empty if it is whole and its digest fits."""
    if card.get("format") != _FORMAT:
        return f"format {card.get('format')!r} is not {_FORMAT}"
    missing = [name for name in _TABLES if not isinstance(card.get(name), dict)]
    if missing:
        return f"lacks [{'], ['.join(missing)}]"
    digests = card["digests"]
    if not isinstance(digests.get("run"), str) or not isinstance(digests.get("predictions"), str):
        return "lacks its digests"
    return "" if digests["run"] == card_digest(card) else "was edited: its digest does not fit what it says"


def card_digest(card: dict[str, Any]) -> str:
    """sha256 over all that run.toml says except this digest itself."""
    rest = {key: value for key, value in card.items() if key != "digests"}
    return identity_of(rest | {"digests": {"predictions": card["digests"]["predictions"]}})


class RunFolder:
    """A run under way. Finished seeds are kept; other processes may add theirs."""

    def __init__(self, path: Path, plan: dict[str, Any]) -> None:
        self.path, self.plan = path, plan

    @classmethod
    def begin(cls, path: Path, plan: dict[str, Any]) -> RunFolder:
        """Start a run, or go on with one of the same plan. Refuses another's folder and a finished run's."""
        plan = json.loads(canonical_json(plan))
        with locked(path / "plan.json"):
            if (path / "run.toml").exists():
                raise BadRun(f"{path} holds a finished run, which is never changed: choose another --out")
            here = path / "plan.json"
            if here.exists():
                try:
                    begun = json.loads(here.read_text("utf-8"))
                except ValueError as error:
                    raise BadRun(f"{here} cannot be read: remove {path} or choose another --out") from error
                if begun != plan:
                    differing = sorted(key for key in {*begun, *plan} if begun.get(key) != plan.get(key))
                    raise BadRun(
                        f"{path} holds an unfinished run of another plan (other {', '.join(differing)}): "
                        "choose another --out or remove it"
                    )
            else:
                foreign = [item.name for item in path.iterdir() if not item.name.endswith(".lock")]
                if foreign:
                    raise BadRun(f"{path} is not empty (it holds {foreign[0]}): choose another --out")
                write_atomically(here, canonical_json(plan))
        folder = cls(path, plan)
        folder.log("begun", seeds=plan["seeds"])
        return folder

    def done(self) -> list[int]:
        """The seeds whose shard is whole."""
        return [seed for seed in self.plan["seeds"] if self._shard_card(seed) is not None]

    def missing(self) -> list[int]:
        done = self.done()
        return [seed for seed in self.plan["seeds"] if seed not in done]

    def keep(self, seed: int, predictions: pa.Table, spent: dict[str, Any]) -> None:
        """Store a seed's predictions: first the rows, then the card that vouches for them."""
        content = _parquet(predictions)
        base = self.path / "shards" / f"seed-{seed}"
        write_atomically(base.with_suffix(".parquet"), content)
        card = {"seed": seed, "sha256": sha256(content).hexdigest(), "spent": spent}
        write_atomically(base.with_suffix(".json"), json.dumps(card).encode())
        self.log("seed done", seed=seed, **spent)

    def _shard_card(self, seed: int) -> dict[str, Any] | None:
        base = self.path / "shards" / f"seed-{seed}"
        try:
            card: dict[str, Any] = json.loads(base.with_suffix(".json").read_text("utf-8"))
            whole = card["sha256"] == file_sha256(base.with_suffix(".parquet"))
        except (OSError, ValueError, KeyError):
            return None
        return card if whole else None

    def log(self, event: str, **facts: Any) -> None:
        """Append one line to log.jsonl."""
        line = json.dumps({"time": now(), "event": event, **facts}) + "\n"
        with plain_disk_errors(self.path), (self.path / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(line)

    def finish(self) -> Run:
        """Merge the shards, write run.toml last, and remove what is no longer needed."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with locked(self.path / "plan.json"):
            cards = {seed: self._shard_card(seed) for seed in self.plan["seeds"]}
            absent = [seed for seed, card in cards.items() if card is None]
            if absent:
                raise BadRun(f"{self.path}: seeds {absent} are not done")
            shards = [pq.read_table(self.path / "shards" / f"seed-{seed}.parquet") for seed in self.plan["seeds"]]
            content = _parquet(pa.concat_tables(shards))
            write_atomically(self.path / "predictions.parquet", content)
            self.log("finished")
            spent = {f"seed_{seed}": card["spent"] for seed, card in cards.items() if card is not None}
            card: dict[str, Any] = {
                "format": _FORMAT,
                "benchmark": self.plan["benchmark"],
                "model": self.plan["model"],
                "budget": self.plan["budget"] | {"seeds": self.plan["seeds"]},
                "environment": environment(),
                "spent": {"finished": now(), "seconds": round(_seconds(spent), 3), "by_seed": spent},
                "digests": {"predictions": sha256(content).hexdigest()},
            }
            card["digests"]["run"] = card_digest(card)
            write_atomically(self.path / "run.toml", tomli_w.dumps(card).encode())
        shutil.rmtree(self.path / "shards", ignore_errors=True)
        for leftover in (self.path / "plan.json", self.path / "plan.json.lock"):
            leftover.unlink(missing_ok=True)
        return read_run(self.path)


def _seconds(spent: dict[str, dict[str, Any]]) -> float:
    return sum(float(item.get("fit_seconds", 0)) + float(item.get("predict_seconds", 0)) for item in spent.values())


def _parquet(table: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def now() -> str:
    """The time in UTC, to the second, ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def environment() -> dict[str, Any]:
    """What may explain a difference: versions and platform. Never a name, a path or a secret."""
    import numpy
    import pyarrow

    found = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count() or 0,
        "numpy": numpy.__version__,
        "pyarrow": pyarrow.__version__,
        "farshift": version(),
    }
    for name in ("torch", "sklearn"):
        if name in sys.modules:
            found[name] = str(getattr(sys.modules[name], "__version__", ""))
    return found


def version() -> str:
    """The installed version of Farshift."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("farshift")
    except PackageNotFoundError:
        return "unknown"


class Stopwatch:
    """Seconds of wall clock since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def seconds(self) -> float:
        return round(time.perf_counter() - self._start, 3)
