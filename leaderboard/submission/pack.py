"""Pack runs for a board: prediction files and cards, without code or pickles.

A submission is a zip: `submission.toml`, and for each run `runs/<n>.toml` and `predictions/<n>.parquet`. The same runs
and card always give the same bytes.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.runs.run import Run, read_run
from ...core.documents import read_toml
from ...core.errors import FarshiftError
from ...core.files import get_user_home, write_atomically
from ..ledger.keys import SigningKey, create_key
from ..validation.archive import CARD
from ..validation.card import FORMAT, UNKNOWN, ModelCard, TeamCard, parse_team_card, sign_card
from ..validation.process import ReaderProcess
from .validate import name_run_files, validate_open_submission

Card = Mapping[str, Any] | Path | str
"""A card for `pack_runs`: its content, or the TOML file with it (farshift pack --template prints one)."""


def pack_runs(
    runs: Sequence[Run | Path | str],
    out: Path | str,
    team: str = "",
    note: str = "",
    card: Card | None = None,
    name: str = "",
    known: Mapping[str, Benchmark] | None = None,
    key: SigningKey | None = None,
    default_team: str = "",
) -> Path:
    """Pack finished runs into a submission file, after all the checks that a board makes.

    `card` has `name`, `team`, `note` and the table `model`; the arguments override its values. Two runs of one model on
    one benchmark, budget and rule are refused; `BadSubmission` lists every problem of the runs. `known`: the
    benchmarks, if they are not the catalogue's (a sealed window has its own). `key`: the team's key, which signs the
    submission; `default_team`: the team's name if neither card nor arguments have one.
    """
    read = [run if isinstance(run, Run) else read_run(run) for run in runs]
    if not read:
        raise FarshiftError("pack: name at least one run folder")
    read.sort(key=lambda run: (run.benchmark, run.model, run.budget, run.digest))
    _refuse_duplicates(read)
    who = _read_submission_card(card, {"name": name, "team": team, "note": note}, default_team)
    content = _build_archive(read, who, key)
    out = Path(out)
    with ReaderProcess() as reader:
        validate_open_submission(io.BytesIO(content), out.name, reader, known=known)
    write_atomically(out, content, "choose a file on another disk (--out)")
    return out


def _read_submission_card(card: Card | None, given: dict[str, str], default_team: str) -> TeamCard:
    """Name, team, note and model card, from the card and the arguments."""
    file = str(card) if isinstance(card, str | Path) else "card"
    card_values = read_toml(Path(card)) if isinstance(card, str | Path) else dict(card or {})
    card_values["team"] = card_values.get("team") or default_team
    return parse_team_card(card_values | {key: value for key, value in given.items() if value}, file, "pack")


def _refuse_duplicates(runs: Sequence[Run]) -> None:
    seen: dict[tuple[Any, ...], Run] = {}
    for run in runs:
        twin = seen.setdefault((run.benchmark, run.model, run.budget, run.steps, run.selection), run)
        if twin is not run:
            raise FarshiftError(
                f"{twin.path} and {run.path} are both {run.model} on {run.benchmark} (budget {run.budget}): "
                "pack one of them, or evaluate one again with another --name"
            )


def _build_archive(runs: Sequence[Run], who: TeamCard, key: SigningKey | None) -> bytes:
    card: dict[str, Any] = {
        "format": FORMAT,
        "name": who.name,
        "team": who.team,
        "note": who.note,
        **({"choose": True} if who.choose else {}),
        "model": _declare_pretraining(who.model, runs).record(),
        "runs": [
            {
                "benchmark": run.benchmark,
                "model": run.model,
                "run": run.digest,
                "predictions": run.card.digests.predictions,
            }
            for run in runs
        ],
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as bundle:
        _add_file(bundle, CARD, tomli_w.dumps(card if key is None else sign_card(card, key)).encode())
        for number, run in enumerate(runs):
            for name, source in zip(name_run_files(number), ("run.toml", "predictions.parquet"), strict=True):
                _add_file(bundle, name, (run.path / source).read_bytes())
    return buffer.getvalue()


def _declare_pretraining(card: ModelCard, runs: Sequence[Run]) -> ModelCard:
    """Add the pretrained weights that the runs report to the card's pretraining data."""
    weights = [str(entry["name"]) for run in runs for entry in run.card.model.extra.get("pretrained", ())]
    new = [name for name in dict.fromkeys(weights) if name not in card.pretraining]
    return card if card.pretraining == [UNKNOWN] else card.model_copy(update={"pretraining": card.pretraining + new})


def _add_file(bundle: zipfile.ZipFile, name: str, content: bytes) -> None:
    # A fixed date and mode: the same runs always give the same bytes.
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.external_attr = 0o644 << 16
    bundle.writestr(entry, content)


def create_team(name: str = "") -> tuple[SigningKey, bool]:
    """The team's key in the user's home, and whether it was just created; `name` becomes the team's name there."""
    file = _get_key_folder() / "key.pem"
    if name:
        parse_team_card({"team": name}, "team --create", "team --create")
    new = not file.exists()
    key = create_key(file, "team")
    if name:
        write_atomically(_get_key_folder() / "team.toml", tomli_w.dumps({"name": name}).encode())
    return key, new


def find_default_key(file: Path | None = None) -> SigningKey | None:
    """The key in `file`; by default the key in the user's home, None if there is none."""
    if file is not None:
        if not file.is_file():
            raise FarshiftError(f"{file}, the team's key, is missing: farshift team --create creates one in your home")
        return SigningKey(file, "team")
    home = _get_key_folder() / "key.pem"
    return SigningKey(home, "team") if home.exists() else None


def read_team_name() -> str:
    """The team's name in the user's home, or ""."""
    path = _get_key_folder() / "team.toml"
    return str(read_toml(path).get("name", "")) if path.is_file() else ""


def _get_key_folder() -> Path:
    return get_user_home() / "team"
