"""The file of predictions for a window: a submission of one run whose benchmark is the window's. It is packed and
checked like every submission, against the rows of the published draw, so that no message can depend on a label."""

from __future__ import annotations

from pathlib import Path

from ...benchmarks.runs.run import Run
from ...core.errors import BadSubmission, FarshiftError, SubmissionRejected
from ..board_view import BoardView
from ..ledger.keys import SigningKey
from ..submission.pack import Card, pack_runs
from ..submission.team_key import find_default_key
from ..submission.validate import Submission, ValidRun, validate_open_submission
from ..validation.process import Reader
from .benchmark import SealedBenchmark, make_sealed_benchmark
from .draw_folder import PublishedDraw, find_window_benchmark, read_draw
from .window import WindowPaths


def pack_answers(
    run: Run,
    out: Path | str,
    draw: PublishedDraw | Path | str,
    team: str,
    card: Card | None = None,
    key: SigningKey | None = None,
) -> Path:
    """Pack the run that `predict_draw` wrote. `card`: the model card, as for any submission; `key`: the team's key,
    which signs the submission; by default the key in the user's home (`farshift team --create`). Raises
    `BadSubmission` with every problem that the board would find."""
    _require_team(team)
    signing = key or find_default_key()
    if signing is None:
        raise FarshiftError("submissions to a window are signed: create your team's key with farshift team --create")
    published_draw = draw if isinstance(draw, PublishedDraw) else read_draw(draw)
    sealed = make_sealed_benchmark(find_window_benchmark(published_draw.terms), published_draw)
    return pack_runs([run], out, team=team, card=card, known={sealed.name: sealed}, key=signing)


def read_window_draw(board: BoardView, window: str) -> PublishedDraw:
    """The published draw of a window, from the board's files."""
    paths = WindowPaths(window)
    board.file(paths.inputs)
    card = board.file(paths.card) or board.path / paths.card
    return read_draw(card.parent)


def check_answers(file: Path | str, sealed: SealedBenchmark) -> tuple[Submission, ValidRun]:
    """Read and validate a submission to a window. Returns the submission and its only run."""
    path = Path(file)
    if not path.is_file():
        raise BadSubmission(f"{path} does not exist or is not a file")
    with path.open("rb") as content, Reader() as reader:
        submission = validate_open_submission(content, path.name, reader, known={sealed.name: sealed})
    if len(submission.entries) != 1:
        raise BadSubmission(f"{path} has {len(submission.entries)} runs: a submission to a window has exactly one")
    _require_team(submission.team)
    return submission, submission.entries[0]


def _require_team(team: str) -> None:
    """Refuse a submission without a team."""
    if not team.strip():
        raise SubmissionRejected("a submission to a window needs a team name: set --team")
