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

    @classmethod
    @contextmanager
    def begin(cls, path: Path, plan: dict[str, Any]) -> Iterator[RunFolder]:
        """Start a run, or go on with one of the same plan, and hold its lock while the context lasts. Refuses
        another's folder and a finished run's."""
        plan = json.loads(canonical_json(plan))
        with plain_disk_errors(path, _ADVICE):
            path.mkdir(parents=True, exist_ok=True)
        with locked(lock_elsewhere(path), str(path)):
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
                for leftover in path.glob(".plan.json.*.tmp"):  # a process was killed as it began
                    leftover.unlink()
                foreign = sorted(item.name for item in path.iterdir())
                if foreign:
                    raise BadRun(f"{path} is not empty (it holds {foreign[0]}): choose another --out")
                write_atomically(here, canonical_json(plan), _ADVICE)
            folder = cls(path, plan)
            folder.log("begun", seeds=plan["seeds"])
            yield folder

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


def _seconds(spent: dict[str, dict[str, Any]]) -> float:
    return sum(float(item.get("fit_seconds", 0)) + float(item.get("predict_seconds", 0)) for item in spent.values())


def _parquet(table: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()
