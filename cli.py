"""The command line: one short function a command. `farshift --help` imports nothing heavy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from .terminal import complain, debugging, emit_json, line, table, watched

app = typer.Typer(
    name="farshift",
    help="How far does a model's skill carry when the data shifts? Splits, a harness, baselines, a leaderboard.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
splits_app = typer.Typer(help="Versioned splits: list, show, pull, verify, audit, diff, build.", no_args_is_help=True)
baselines_app = typer.Typer(help="Baselines: list.", no_args_is_help=True)
board_app = typer.Typer(help="Leaderboards in a folder: init, site, verify.", no_args_is_help=True)
app.add_typer(splits_app, name="splits")
app.add_typer(baselines_app, name="baselines")
app.add_typer(board_app, name="board")

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of a table.")]
Mirror = Annotated[
    Optional[list[Path]],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Option("--mirror", metavar="DIR", help="Search this folder first, by digest. May be repeated."),
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="The run folder to write; an unfinished run goes on.")]
On = Annotated[str, typer.Option("--on", metavar="BENCHMARK", help="The benchmark's name, such as scan/length.")]
Seeds = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--seeds", min=1, help="How many seeds; by default as many as the protocol asks for."),
]
BudgetName = Annotated[str, typer.Option("--budget", metavar="full|quick", help="The protocol's budget.")]
Steps = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--steps", min=1, help="Optimiser steps, instead of the budget's."),
]
Device = Annotated[str, typer.Option("--device", metavar="D", help="cpu, cuda, cuda:1 ..")]


@app.command()
def quickstart(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the runs and the board go.")] = Path(
        "farshift-quickstart"
    ),
    offline: Annotated[bool, typer.Option("--offline", help="Use no network.")] = False,
    engine: Annotated[str, typer.Option("--engine", metavar="E", help="processes or local.")] = "processes",
    json: Json = False,
) -> None:
    """Pull a split of each kind, train two baselines on each, score them, and open a board."""
    from .quickstart import quickstart as go

    _offline(offline)
    with watched():
        result = go(out, engine)
    if json:
        return emit_json(result.record())
    columns = ["kind", "benchmark", "baseline", "role", "ID", "OOD", "gap = ID - OOD", "memorised"]
    rows = [
        [row["kind"], row["benchmark"], row["baseline"], row["role"], *_percent(row), _view(row["memorised"])]
        for row in result.rows
    ]
    seeds = sorted({row["seeds"] for row in result.rows})
    table(
        f"Quick budget: fewer steps than a full run, {' or '.join(map(str, seeds))} seeds. Scores in percent.",
        columns,
        rows,
        "Brackets are 95 % t intervals over test rows and training seeds. Corrupted-label: OOD is the share of\n"
        "wrongly labelled training rows put right, memorised the share of wrong labels given back.",
    )
    for name, audit in dict((row["benchmark"], row["audit"]) for row in result.rows if "weak" in row["audit"]).items():
        line(f"{name}: {audit}.")
    for item in result.left_out:
        line(f"left out: {item['benchmark']} ({item['kind']}): {item['why']}")
    line(f"{result.seconds:.0f} s. Runs: {out / 'runs'}. Board: {result.board}. Open {result.page.resolve()}")


@splits_app.command("list")
def splits_list(json: Json = False) -> None:
    """List every split."""
    from .splits.catalogue import listing

    found = listing()
    if json:
        return emit_json(found)
    rows = [
        [
            f"{s['name']}@{s['version']}",
            s["kind"],
            s["state"],
            ", ".join(f"{k} {v:,}" for k, v in s["parts"].items()),
            s["title"],
        ]
        for s in found
    ]
    table("", ["split", "kind", "state", "rows", "title"], rows)


@splits_app.command("show")
def splits_show(name: str, json: Json = False) -> None:
    """Show what a split is: its rule, its parts, its identity, its audit."""
    from .splits.catalogue import find

    manifest = find(name)
    record = manifest.definition.model_dump(exclude_none=True) | {"audit": manifest.audit()}
    if json:
        return emit_json(record)
    parts = record.pop("parts")
    rows = [[part, pin["rows"], pin["weighted_rows"], pin["digest"][:16]] for part, pin in parts.items()]
    for key, value in record.items():
        if key not in ("audit", "format") and value not in ("", [], False):
            line(f"{key:>11}: {value}")
    line(f"{'audit':>11}: {manifest.audit_summary() or 'none'}")
    table("", ["part", "rows", "with copies", "digest"], rows)


@splits_app.command("pull")
def splits_pull(
    names: Annotated[Optional[list[str]], typer.Argument(metavar="[NAME]...")] = None,  # noqa: UP045
    all_: Annotated[bool, typer.Option("--all", help="Every frozen split.")] = False,
    mirror: Mirror = None,
    offline: Annotated[bool, typer.Option("--offline", help="Use no network.")] = False,
    json: Json = False,
) -> None:
    """Bring a split's rows into the local cache, verified."""
    from .loaders.split import open_split

    _offline(offline)
    done: list[dict[str, Any]] = []
    with watched():
        for name in _names(names, all_):
            split = open_split(name, _folders(mirror))
            parts = {part: split.manifest.definition.parts[part].rows for part in split.parts}
            done.append({"split": split.manifest.full_name, "parts": parts, "cached_at": str(split.source.cached_at)})
    if json:
        return emit_json(done)
    for item in done:
        counts = ", ".join(f"{part} {rows:,}" for part, rows in item["parts"].items())
        line(f"{item['split']}: {counts}; verified, in {item['cached_at']}")


@splits_app.command("verify")
def splits_verify(
    names: Annotated[Optional[list[str]], typer.Argument(metavar="[NAME]...")] = None,  # noqa: UP045
    all_: Annotated[bool, typer.Option("--all", help="Every frozen split.")] = False,
    mirror: Mirror = None,
    json: Json = False,
) -> None:
    """Prove manifests again, row by row, from their sources. Exit code 1 where one does not hold."""
    from .loaders.freeze import verify
    from .splits.catalogue import find

    with watched():
        found = [verify(find(name), _folders(mirror)) for name in _names(names, all_)]
    if json:
        emit_json([verdict.__dict__ for verdict in found])
    else:
        table("", ["split", "state", "identity", "why"], [[v.name, v.state, v.identity[:16], v.why] for v in found])
    _exit_if(any(verdict.state != "verified" for verdict in found))


@splits_app.command("audit")
def splits_audit(name: str, mirror: Mirror = None, json: Json = False) -> None:
    """Measure what shift a split holds, and compare with its published audit. Exit code 1 if it does not hold."""
    from .loaders.freeze import audit_again

    with watched():
        found, agrees = audit_again(name, _folders(mirror))
    if json:
        emit_json(found | {"agrees_with_published": agrees})
    else:
        for key, value in found.items():
            line(f"{key:>30}: {value}")
        line(f"{'agrees with the published one':>30}: {agrees}")
    _exit_if(not (found["holds"] and agrees))


@splits_app.command("diff")
def splits_diff(old: str, new: str, mirror: Mirror = None, json: Json = False) -> None:
    """Say which rows moved between two versions, and what else changed."""
    from .loaders.diff import diff
    from .splits.catalogue import find

    with watched():
        found = diff(find(old), find(new), _folders(mirror))
    if json:
        return emit_json(found)
    line(f"{found['old']} -> {found['new']}: {'the same rows' if found['same_identity'] else 'different identities'}")
    for pair, item in found["moved"].items():
        line(f"  {item['rows']:,} rows moved {pair} (first {', '.join(item['first'])})")
    for key in ("added", "removed", "changed", "weight", "group", "severity", "label"):
        if found[key]["rows"]:
            line(f"  {found[key]['rows']:,} rows: {key} (first {', '.join(found[key]['first'])})")
    for key, (before, after) in found["said"].items():
        line(f"  {key}: {before} -> {after}")


@splits_app.command("build")
def splits_build(
    file: Annotated[Path, typer.Argument(help="A split.toml without parts and identity.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where <source>/<split>/v<N>/ is written.")] = Path(
        "splits/manifests"
    ),
    json: Json = False,
) -> None:
    """Freeze a split: rows, digests, audit and identity. Refuses one that does not hold the shift it names."""
    from .loaders.freeze import freeze

    with watched():
        manifest, audit = freeze(file, out)
    if json:
        return emit_json(
            {"split": manifest.full_name, "identity": manifest.identity, "folder": str(manifest.folder), "audit": audit}
        )
    line(f"{manifest.full_name} frozen in {manifest.folder}: identity {manifest.identity}")
    line(f"audit: {audit['why']}")


@baselines_app.command("list")
def baselines_list(json: Json = False) -> None:
    """List every baseline."""
    from .baselines.listing import listing

    found = listing()
    if json:
        return emit_json(found)
    rows = [[r["name"], r["kind"], ", ".join(f"{k} ({v})" for k, v in r["roles"].items()), r["title"]] for r in found]
    table("", ["baseline", "kind", "role in the quickstart", "title"], rows)


@app.command()
def run(
    baseline: str,
    on: On,
    out: Out,
    seeds: Seeds = None,
    device: Device = "cpu",
    engine: Annotated[str, typer.Option("--engine", metavar="E", help="local or processes.")] = "local",
    budget: BudgetName = "full",
    steps: Steps = None,
    json: Json = False,
) -> None:
    """Train a baseline on a benchmark, evaluate and score it."""
    from .baselines.sweep import run_baseline

    with watched():
        done = run_baseline(
            baseline, on, seeds=seeds, out=out, budget=budget, steps=steps, device=device, engine=engine
        )
    _scored(done, json)


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(help="file.py:factory or package.module:attribute")],
    on: On,
    out: Out,
    seeds: Seeds = None,
    device: Device = "cpu",
    budget: BudgetName = "full",
    steps: Steps = None,
    name: Annotated[str, typer.Option("--name", help="The model's name on the run card.")] = "",
    batch_size: Annotated[int, typer.Option("--batch-size", min=1)] = 512,
    json: Json = False,
) -> None:
    """Evaluate your own model on a benchmark and score it."""
    from .benchmarks.harness import evaluate as go
    from .benchmarks.own_model import find_model

    with watched():
        found, code = find_model(model)
        done = go(
            found,
            on,
            seeds=seeds,
            out=out,
            device=device,
            budget=budget,
            steps=steps,
            name=name or None,
            batch_size=batch_size,
            code=code,
        )
    _scored(done, json)


@app.command()
def score(runs: Annotated[list[Path], typer.Argument(metavar="RUN...")], json: Json = False) -> None:
    """Score finished runs from their predictions."""
    from .benchmarks.score import score as go

    with watched():
        found = [go(path) for path in runs]
    if json:
        return emit_json([item.record for item in found])
    for item in found:
        line(str(item))


@app.command()
def compare(
    left: Annotated[Path, typer.Argument(metavar="RUN")],
    right: Annotated[Path, typer.Argument(metavar="RUN")],
    json: Json = False,
) -> None:
    """Compare two runs on the same rows: the paired difference, with its interval."""
    from .benchmarks.score import compare as go

    with watched():
        found = go(left, right)
    if json:
        return emit_json(found)
    words = {True: "yes", False: "no", None: "needs more seeds"}
    rows = [
        [
            name,
            f"{item['value']:+.4f}",
            f"[{item['low']:+.4f}, {item['high']:+.4f}]",
            words[item["distinguishable"]],
        ]
        for name, item in found["difference"].items()
    ]
    title = f"{found['left']} minus {found['right']} on {found['benchmark']}"
    table(title, ["score", "difference", "95 % interval", "distinguishable"], rows, found["interval"])


@app.command()
def pack(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The submission file to write.")],
    team: Annotated[str, typer.Option("--team")] = "",
    note: Annotated[str, typer.Option("--note")] = "",
    json: Json = False,
) -> None:
    """Pack finished runs into a submission file: predictions and cards, no code."""
    from .leaderboard.submission import pack as go

    file = go(runs, out, team, note)
    if json:
        return emit_json({"file": str(file), "bytes": file.stat().st_size, "runs": [str(path) for path in runs]})
    size = f"{_count(len(runs), 'run')}, {file.stat().st_size:,} bytes"
    line(f"{file}: {size}. Hand it in: farshift submit {file} --to BOARD")


@app.command()
def submit(
    file: Path,
    to: Annotated[
        str, typer.Option("--to", metavar="DIR|URL", help="The board: a folder made by farshift board init.")
    ],
    json: Json = False,
) -> None:
    """Hand a submission in: validated, scored from its predictions, entered in the ledger."""
    from .leaderboard.board import at

    with watched():
        board = at(to)
        entries, new = board.submit(file)
    if json:
        return emit_json({"board": str(board.path), "entries": entries, "new": new})
    line(
        f"{_count(len(entries), 'entry', 'entries')} on {board.path}: {', '.join(entries)}"
        + ("" if new else " (they were there already)")
    )


@board_app.command("init")
def board_init(
    folder: Path,
    name: Annotated[str, typer.Option("--name", help="The board's title.")] = "Farshift board",
    json: Json = False,
) -> None:
    """Make a new board in an empty folder."""
    from .leaderboard.board import Board

    board = Board.init(folder, name)
    emit_json({"board": str(board.path), "name": board.name}) if json else line(f"{board.path}: a new board, {name!r}")


@board_app.command("site")
def board_site(
    folder: Path,
    out: Annotated[Optional[Path], typer.Option("--out", metavar="DIR", help="Default: FOLDER/site.")] = None,  # noqa: UP045
    json: Json = False,
) -> None:
    """Write the board as static pages."""
    from .leaderboard.board import Board
    from .leaderboard.site import build

    page = build(Board(folder), out)
    emit_json({"page": str(page)}) if json else line(f"open {page.resolve()}")


@board_app.command("verify")
def board_verify(folder: Path, json: Json = False) -> None:
    """Recompute the chain and every score from the stored predictions. Exit code 1 on any difference."""
    from .leaderboard.board import Board

    with watched():
        found = Board(folder).verify()
    if json:
        emit_json({"board": str(folder), "verified": not found.differences, **found.__dict__})
    else:
        whole = found.entries - len(found.not_recomputed)
        state = _count(len(found.differences), "difference") if found.differences else f"{whole} verified"
        left = f", {len(found.not_recomputed)} not recomputed" if found.not_recomputed else ""
        line(f"{folder}: {_count(found.entries, 'entry', 'entries')}: {state}{left}")
        for text in (*found.differences, *(f"not recomputed: {why}" for why in found.not_recomputed)):
            line(f"  {text}")
    _exit_if(bool(found.differences))


@app.command()
def doctor(json: Json = False) -> None:
    """Check this machine: packages, cache, device, sources. Exit code 1 where something needed is missing."""
    from .doctor import examine

    found = examine()
    if json:
        emit_json(found)
    else:
        words = {True: "ok", False: "MISSING", None: "optional"}
        table("", ["check", "state", "detail"], [[c["check"], words[c["ok"]], c["detail"]] for c in found])
    _exit_if(any(check["ok"] is False for check in found))


def _version(wanted: bool) -> None:
    if wanted:
        from .benchmarks.run import version

        line(version())
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _count(number: int, one: str, more: str = "") -> str:
    return f"{number} {one if number == 1 else more or one + 's'}"


def _offline(wanted: bool) -> None:
    if wanted:
        import os

        os.environ["FARSHIFT_OFFLINE"] = "1"  # worker processes inherit it


def _folders(mirror: list[Path] | None) -> tuple[Path, ...]:
    from .splits.errors import FarshiftError

    for folder in mirror or ():
        if not folder.is_dir():
            raise FarshiftError(f"--mirror: {folder} is not a folder")
    return tuple(mirror or ())


def _names(names: list[str] | None, all_: bool) -> list[str]:
    from .splits.catalogue import manifests
    from .splits.errors import FarshiftError

    if bool(names) == all_:
        raise FarshiftError("name one or more splits, or give --all")
    return names or [manifest.full_name for manifest in manifests() if manifest.frozen]


def _scored(done: Any, json: bool) -> None:
    from .benchmarks.score import score as go

    found = go(done)
    if json:
        return emit_json({"run": str(done.path), "digest": done.digest, "score": found.record})
    line(str(found))
    line(f"run: {done.path}")


def _percent(row: dict[str, Any]) -> list[str]:
    return [_view(row[name]) for name in ("id", "ood", "gap")]


def _view(estimate: dict[str, Any] | None) -> str:
    if estimate is None:
        return ""
    value, low, high = (f"{100 * estimate[key] + 0.0:.1f}".replace("-0.0", "0.0") for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def _exit_if(failed: bool) -> None:
    if failed:
        raise typer.Exit(1)


_INTERRUPTED = "interrupted; what was done is kept, and the same command goes on"


def main() -> None:
    """The entry point: errors a user can cause become one line and exit code 2."""
    from .splits.errors import FarshiftError

    try:
        status = typer.main.get_command(app).main(standalone_mode=False)
    except KeyboardInterrupt:
        complain(_INTERRUPTED)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
    except (FarshiftError, OSError) as error:
        if debugging():
            raise
        complain(f"error: {error}")
        sys.exit(2)
    except Exception as error:
        # The command line library's own complaints (an unknown option, a missing argument) know how to say it.
        if not hasattr(error, "format_message") or debugging():
            raise
        if message := error.format_message():  # empty where the help was printed instead
            complain(f"error: {message}")
        sys.exit(2)
    if status == 130:
        complain(_INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)
