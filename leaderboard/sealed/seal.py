"""The board's side of a window: one record commits to a secret, announces the terms and publishes the draw; after the
closing time, every submission is scored and the seed is revealed, by records that are appended together.

An interrupted call leaves no record and can be repeated. Until the reveal the secret is in only one file, in the
board's private folder, with mode 600, which is written before the record.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...benchmarks.benchmark import Benchmark, find_benchmark, make_canary
from ...benchmarks.scoring.score import score_predictions
from ...core.canonical import to_canonical_json
from ...core.errors import FarshiftError
from ...core.files import read_private, write_private
from ...core.progress import report_progress
from ...core.text import format_count
from ..ledger.store import JOBS
from ..storage.board_files import compute_digests
from ..submission.validate import ValidRun
from .drawing import CIPHER, SealedDraw, check_sealable, draw_sealed_rows
from .published import (
    SealedBenchmark,
    compute_inputs_digest,
    find_window_benchmark,
    make_draw_files,
    make_sealed_benchmark,
    select_inputs,
)
from .results import compute_contrast
from .submit import check_answers, read_window_draw
from .window import (
    SEED_BYTES,
    Clock,
    Terms,
    Window,
    find_window,
    format_time,
    get_utc_time,
    get_window_path,
    make_answers_owner,
    parse_time,
    read_windows,
)

if TYPE_CHECKING:
    from ..board import Board


Entropy = Callable[[int], bytes]

TO_REVEAL = timedelta(days=7)
"""Default time from the closing to the latest reveal of the seed."""


def seal_benchmark(
    board: Board,
    benchmark: str,
    closes: str,
    clock: Clock = get_utc_time,
    entropy: Entropy = os.urandom,
    reveals: str = "",
) -> Window:
    """Draw the rows of a window until `closes` (ISO 8601), whose seed is revealed by `reveals` (seven days later by
    default), from a secret, and open it with a commitment to the secret. Raises `FarshiftError` if the benchmark cannot
    be sealed or the times are invalid."""
    public = find_benchmark(benchmark)
    check_sealable(public)
    last = parse_time(closes)
    if last <= clock():
        raise FarshiftError(f"--closes {closes} is in the past: choose a later time")
    revealed = parse_time(reveals) if reveals else last + TO_REVEAL
    if revealed < last:
        raise FarshiftError(f"a window cannot be revealed ({reveals}) before it closes ({closes})")
    with board.locked():
        known, manifest = read_windows(board.ledger.records()), public.manifest
        number = 1 + sum(window.terms.benchmark == benchmark for window in known.values())
        name = f"{benchmark.replace('/', '__')}-{number}"
        times = format_time(last), format_time(revealed)
        terms = Terms(name, benchmark, manifest.full_name, manifest.identity, times[0], CIPHER, times[1])
        write_private(get_seed_path(board, name), entropy(SEED_BYTES).hex().encode())
        secret = read_secret_seed(board, name)
        drawn = draw_sealed_rows(public, secret)
        files = make_opening_files(terms, secret, drawn, public)
        inputs = select_inputs(drawn.rows, public)
        body = {
            **terms.record(),
            "commitment": terms.commitment(secret),
            "rows": inputs.num_rows,
            "inputs": compute_inputs_digest(inputs, public),
            "canary": make_canary(public),
            "files": compute_digests(files),
        }
        board.enter([("window_opened", body)], files)
        return read_windows(board.ledger.records())[name]


def make_opening_files(terms: Terms, secret: bytes, drawn: SealedDraw, benchmark: Benchmark) -> dict[str, bytes]:
    """The files of an open window: the draw for participants, and its profile with that of the public test."""
    served = make_draw_files(terms, terms.commitment(secret), select_inputs(drawn.rows, benchmark), benchmark)
    contents = dict(zip(("card", "inputs"), served.values(), strict=True))
    contents["profile"] = to_canonical_json(drawn.profile)
    return {get_window_path(terms.window, file): content for file, content in contents.items()}


def get_seed_path(board: Board, window: str) -> Path:
    """The path of a window's secret seed before the reveal."""
    return board.private / "sealed" / window / "seed"


def read_secret_seed(board: Board, window: str) -> bytes:
    """Read the window's seed from the board's private file."""
    path = get_seed_path(board, window)
    text = read_private(path, f"the secret seed of window {window}")
    try:
        seed = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        seed = b""
    if len(seed) != SEED_BYTES:
        raise FarshiftError(f"{path} does not contain a seed of {SEED_BYTES} bytes: restore it")
    return seed


def close_window(board: Board, window: str, clock: Clock = get_utc_time) -> Window:
    """Close a window after its closing time: score its submissions and reveal the seed. Closing it again changes
    nothing. Raises `FarshiftError` before the closing time."""
    with board.locked():
        sealed_window = find_window(board.ledger.records(), window)
        state = sealed_window.state(clock())
        if state == "revealed":
            return sealed_window
        if state != "due":
            raise FarshiftError(
                f"window {sealed_window.name} closes at {sealed_window.terms.closes}: it is {state} now"
            )
        _require_checked(board, sealed_window.name)
        _reveal_seed(board, sealed_window)
        return read_windows(board.ledger.records())[sealed_window.name]


def _require_checked(board: Board, window: str) -> None:
    """Raise `FarshiftError` if a server has answers that it received in time and did not check yet."""
    from sqlalchemy import func, select

    of_window = JOBS.c.owner.startswith(make_answers_owner(window, ""), autoescape=True)
    unchecked = select(func.count()).where(of_window, JOBS.c.state.in_(("queued", "running")))
    with board.ledger.store.reading() as connection:
        number = connection.execute(unchecked).scalar_one()
    if number:
        raise FarshiftError(
            f"{window}: {format_count(number, 'answer')} arrived in time, not checked yet: repeat this command when "
            f"the board's server, or farshift board work {board.location} --once, has checked them"
        )


def _reveal_seed(board: Board, window: Window) -> None:
    secret = read_secret_seed(board, window.name)
    if window.terms.commitment(secret) != window.commitment:
        raise FarshiftError(f"the seed of window {window.name} does not match the commitment: restore it")
    public = find_window_benchmark(window.terms)
    published_draw = read_window_draw(board, window.name)
    sealed = make_sealed_benchmark(public, published_draw, draw_sealed_rows(public, secret))
    events: list[tuple[str, dict[str, Any]]] = []
    files: dict[str, bytes] = {}
    for number, (digest, body) in enumerate(window.answers.items()):
        path = get_window_path(window.name, "answers", digest)
        _, entry = check_answers(board.file(path) or board.path / path, sealed)
        score = to_canonical_json(score_answers(sealed, entry))
        score_files = {get_window_path(window.name, "score", digest): score}
        score_record = {name: body[name] for name in ("window", "submission", "team", "model")}
        events.append(("scored", score_record | {"files": compute_digests(score_files)}))
        files |= score_files
        report_progress("scoring", number + 1, len(window.answers))
    board.enter([*events, ("seed_revealed", {"window": window.name, "seed": secret.hex()})], files)


def score_answers(sealed: SealedBenchmark, entry: ValidRun) -> dict[str, Any]:
    """The score of a team's submission by the scorer of ordinary entries, and the contrast of public and sealed rows;
    n/a with the reason if they cannot be computed."""
    try:
        score = score_predictions(sealed, entry.predictions, entry)
        return {"score": score.to_dict(), "contrast": compute_contrast(sealed, entry.predictions, entry)}
    except FarshiftError as error:
        return {"n/a": str(error)}
