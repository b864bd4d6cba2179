"""The board's side of a window: secret, commitment, draw, and then the open window, in this order; after its closing
time every submission is scored and the seed is revealed.

Each step is on the disk before the next one and can be repeated: if the process is killed between two steps, calling
`seal_benchmark` for the same benchmark continues the window with its original secret and terms, and `close_window`
continues a window that is closed but not revealed. Until the reveal the secret is in only one file, in the board's
private folder, with mode 600.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...benchmarks.benchmark import Benchmark, find_benchmark, make_canary
from ...benchmarks.scoring.score import score_predictions
from ...core.canonical import to_canonical_json
from ...core.documents import parse_json
from ...core.errors import FarshiftError
from ...core.files import read_private, write_private
from ...core.progress import report_progress
from ...core.text import format_count
from ..ledger.schema import JOBS
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
    WindowPaths,
    find_window,
    format_time,
    get_utc_time,
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
    """Commit to a secret, announce a window until `closes` (ISO 8601), whose seed is revealed by `reveals` (seven days
    later by default), draw its rows and open it. A repeated call after a crash continues. Raises `FarshiftError` if
    the benchmark cannot be sealed or the times are invalid."""
    public_benchmark = find_benchmark(benchmark)
    check_sealable(public_benchmark)
    times = _parse_times(closes, reveals, clock)
    with board.locked():
        known = read_windows(board.ledger.records())
        terms = _find_interrupted_terms(board, benchmark, known)
        if terms is None:
            manifest = public_benchmark.manifest
            number = 1 + sum(window.terms.benchmark == benchmark for window in known.values())
            terms = Terms(
                f"{benchmark.replace('/', '__')}-{number}",
                benchmark,
                manifest.full_name,
                manifest.identity,
                times[0],
                CIPHER,
                times[1],
            )
            write_private(get_seed_path(board, terms.window).with_name("plan.json"), to_canonical_json(terms.record()))
        elif terms.closes != times[0]:
            raise FarshiftError(
                f"the sealing of {terms.window} was interrupted: to continue, use its original --closes {terms.closes}"
            )
        _resume_sealing(board, public_benchmark, terms, known, entropy)
        return read_windows(board.ledger.records())[terms.window]


def _resume_sealing(
    board: Board, benchmark: Benchmark, terms: Terms, known: Mapping[str, Window], entropy: Entropy
) -> None:
    """Do every step from the secret to the open window that is not done yet."""
    seed_path = get_seed_path(board, terms.window)
    if not seed_path.exists() and terms.window not in known:
        write_private(seed_path, entropy(SEED_BYTES).hex().encode())
    secret = read_secret_seed(board, terms.window)
    # Before any announcement: the draw may prove impossible.
    drawn = draw_sealed_rows(benchmark, secret)
    if terms.window not in known:
        board.ledger.append([("seed_committed", terms.record() | {"commitment": terms.commitment(secret)})])
    files = make_opening_files(terms, secret, drawn, benchmark)
    inputs = select_inputs(drawn.rows, benchmark)
    body = {
        "window": terms.window,
        "rows": inputs.num_rows,
        "inputs": compute_inputs_digest(inputs, benchmark),
        "canary": make_canary(benchmark),
        "files": compute_digests(files),
    }
    board.enter([("window_opened", body)], files)


def make_opening_files(terms: Terms, secret: bytes, drawn: SealedDraw, benchmark: Benchmark) -> dict[str, bytes]:
    """The files of an open window: the draw for participants, and its profile with that of the public test."""
    paths = WindowPaths(terms.window)
    served = make_draw_files(terms, terms.commitment(secret), select_inputs(drawn.rows, benchmark), benchmark)
    card, inputs = served.values()
    return {paths.card: card, paths.inputs: inputs, paths.profile: to_canonical_json(drawn.profile)}


def _find_interrupted_terms(board: Board, benchmark: str, known: Mapping[str, Window]) -> Terms | None:
    """The terms of a window of this benchmark whose sealing was interrupted."""
    for plan in sorted((board.private / "sealed").glob("*/plan.json")):
        terms = Terms.of(parse_json(read_private(plan, "the plan of a window")))
        window = known.get(terms.window)
        if terms.benchmark == benchmark and (window is None or window.opened is None):
            return terms if window is None else window.terms
    return None


def _parse_times(closes: str, reveals: str, clock: Clock) -> tuple[str, str]:
    last = parse_time(closes)
    if last <= clock():
        raise FarshiftError(f"--closes {closes} is in the past: choose a later time")
    revealed = parse_time(reveals) if reveals else last + TO_REVEAL
    if revealed < last:
        raise FarshiftError(f"a window cannot be revealed ({reveals}) before it closes ({closes})")
    return format_time(last), format_time(revealed)


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
    """Close a window after its closing time: accept no more submissions, score the existing ones, reveal the seed.
    Closing it again changes nothing. Raises `FarshiftError` before the closing time."""
    with board.locked():
        sealed_window = find_window(board.ledger.records(), window)
        state = sealed_window.state(clock())
        if state == "revealed":
            return sealed_window
        if state != "due":
            raise FarshiftError(
                f"window {sealed_window.name} closes at {sealed_window.terms.closes}: it is {state} now"
            )
        if sealed_window.closed is None:
            _require_checked(board, sealed_window.name)
            board.ledger.append([("window_closed", {"window": sealed_window.name})])
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
    paths = WindowPaths(window.name)
    published_draw = read_window_draw(board, window.name)
    sealed = make_sealed_benchmark(public, published_draw, draw_sealed_rows(public, secret))
    events: list[tuple[str, dict[str, Any]]] = []
    files: dict[str, bytes] = {}
    for number, (digest, body) in enumerate(window.answers.items()):
        file = board.file(paths.answers(digest)) or board.path / paths.answers(digest)
        _, entry = check_answers(file, sealed)
        score_files = {paths.score(digest): to_canonical_json(score_answers(sealed, entry))}
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
