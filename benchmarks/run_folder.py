"""A run under way: finished seeds are kept, a killed run goes on where it stopped."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from ..loaders.cache import file_sha256, lock_elsewhere, locked, plain_disk_errors, write_atomically
from ..loaders.progress import say
from ..splits.canonical import canonical_json
from ..splits.errors import BadRun
from .run import FORMAT, Run, card_digest, environment, now, read_run

if TYPE_CHECKING:
    import pyarrow as pa

_ADVICE = "name another --out"


class RunFolder:
    """A run under way. Finished seeds are kept; other processes may add theirs."""

    def __init__(self, path: Path, plan: dict[str, Any]) -> None:
        self.path, self.plan = path, plan
        self.run: Run | None = None

    @classmethod
    @contextmanager
    def begin(cls, path: Path, plan: dict[str, Any]) -> Iterator[RunFolder]:
        """Start a run, or go on with one of the same plan, and hold its lock while the context lasts. A finished run of
        the same plan is there already; a folder with anything else is refused."""
        plan = json.loads(canonical_json(plan))
        with plain_disk_errors(path, _ADVICE):
            path.mkdir(parents=True, exist_ok=True)
        with locked(lock_elsewhere(path), str(path)):
            folder = cls(path, plan)
            if (path / "run.toml").exists():
                folder.run = _finished(path, plan)
                say(f"{path} holds this very run, finished: nothing to do")
                yield folder
                return
            here = path / "plan.json"
            if here.exists():
                try:
                    begun = json.loads(here.read_text("utf-8"))
                except ValueError as error:
                    raise BadRun(f"{here} cannot be read: remove {path} or choose another --out") from error
                if begun != plan:
                    _replace(path, begun, plan)
            else:
                for leftover in path.glob(".plan.json.*.tmp"):  # a process was killed as it began
                    leftover.unlink()
                foreign = sorted(item.name for item in path.iterdir())
                if foreign:
                    raise BadRun(f"{path} is not empty (it holds {foreign[0]}): choose another --out")
                write_atomically(here, canonical_json(plan), _ADVICE)
            folder.log("begun", seeds=plan["seeds"])
            yield folder

    def done(self) -> list[int]:
        """The seeds whose shard is whole."""
        return [seed for seed in self.plan["seeds"] if self._shard_card(seed) is not None]

    def missing(self) -> list[int]:
        if self.run is not None:
            return []
        done = self.done()
        return [seed for seed in self.plan["seeds"] if seed not in done]

    def keep(self, seed: int, predictions: pa.Table, spent: dict[str, Any]) -> None:
        """Store a seed's predictions: first the rows, then the card that vouches for them."""
        content = _parquet(predictions)
        base = self.path / "shards" / f"seed-{seed}"
        write_atomically(base.with_suffix(".parquet"), content, _ADVICE)
        card = {"seed": seed, "sha256": sha256(content).hexdigest(), "spent": spent}
        write_atomically(base.with_suffix(".json"), json.dumps(card).encode(), _ADVICE)
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
        with plain_disk_errors(self.path, _ADVICE), (self.path / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(line)

    def finish(self) -> Run:
        """Merge the shards, write run.toml last, and remove what is no longer needed."""
        if self.run is not None:
            return self.run
        import pyarrow as pa
        import pyarrow.parquet as pq

        cards = {seed: self._shard_card(seed) for seed in self.plan["seeds"]}
        absent = [seed for seed, card in cards.items() if card is None]
        if absent:
            raise BadRun(f"{self.path}: seeds {absent} are not done")
        shards = [pq.read_table(self.path / "shards" / f"seed-{seed}.parquet") for seed in self.plan["seeds"]]
        content = _parquet(pa.concat_tables(shards))
        write_atomically(self.path / "predictions.parquet", content, _ADVICE)
        self.log("finished")
        spent = {f"seed_{seed}": card["spent"] for seed, card in cards.items() if card is not None}
        card: dict[str, Any] = {
            "format": FORMAT,
            "benchmark": self.plan["benchmark"],
            "model": self.plan["model"],
            "budget": self.plan["budget"] | {"seeds": self.plan["seeds"]},
            "environment": environment(),
            "spent": {"finished": now(), "seconds": round(_seconds(spent), 3), "by_seed": spent},
            "digests": {"predictions": sha256(content).hexdigest()},
        }
        card["digests"]["run"] = card_digest(card)
        write_atomically(self.path / "run.toml", tomli_w.dumps(card).encode(), _ADVICE)
        shutil.rmtree(self.path / "shards", ignore_errors=True)
        (self.path / "plan.json").unlink(missing_ok=True)
        return read_run(self.path)


def _finished(path: Path, plan: dict[str, Any]) -> Run:
    """The finished run in a folder, if it is the run of this plan."""
    run = read_run(path)
    planned = {
        "benchmark": plan["benchmark"],
        "model": plan["model"],
        "budget": plan["budget"] | {"seeds": plan["seeds"]},
    }
    differing = _differences({key: run.card[key] for key in planned}, planned)
    if differing:
        raise BadRun(f"{path} holds a finished run (other {differing}), which is never changed: choose another --out")
    return run


def _replace(path: Path, begun: dict[str, Any], plan: dict[str, Any]) -> None:
    """Put a new plan in the place of one under which no seed was finished; else refuse."""
    done = len(RunFolder(path, begun).done())
    if done:
        raise BadRun(
            f"{path} holds an unfinished run of another plan ({done} seeds done; other {_differences(begun, plan)}): "
            "choose another --out or remove it"
        )
    shutil.rmtree(path / "shards", ignore_errors=True)
    write_atomically(path / "plan.json", canonical_json(plan), _ADVICE)


def _differences(old: dict[str, Any], new: dict[str, Any]) -> str:
    """What differs between two plans, by name: `model code`, `seeds` .."""
    found = []
    for key in sorted({*old, *new}):
        a, b = old.get(key), new.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            found += [f"{key} {name}" for name in sorted({*a, *b}) if a.get(name) != b.get(name)]
        elif a != b:
            found.append(key)
    return ", ".join(found)


def _seconds(spent: dict[str, dict[str, Any]]) -> float:
    return sum(float(item.get("fit_seconds", 0)) + float(item.get("predict_seconds", 0)) for item in spent.values())


def _parquet(table: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()
