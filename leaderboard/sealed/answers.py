"""The file of answers: a submission of one run, whose benchmark is the window's. It is packed and checked by what packs
and checks every submission, against the rows of the published draw, so that no message of it can
depend on a label."""

from __future__ import annotations

from pathlib import Path

from ...benchmarks.runs.run import Run
from ...core.errors import BadSubmission, FarshiftError, NotTaken
from ..board_view import BoardView
from ..ledger.keys import SigningKey
from ..submission.pack import Card, pack
from ..submission.team_key import default_key
from ..submission.validate import Submission, ValidRun, checked
from ..validation.process import Reader
from .benchmark import SealedBenchmark, sealed_benchmark
from .draw_folder import Draw, benchmark_of, read_draw
from .window import Places


def pack_answers(
    run: Run,
    out: Path | str,
    draw: Draw | Path | str,
    team: str,
    card: Card | None = None,
    key: SigningKey | None = None,
) -> Path:
    """Pack the run that `predict_draw` wrote. `card`: the model card, as for any submission; `key`: the team's, which
    signs the answers; by default that of the user's home (`farshift team --create`). Raises `BadSubmission` with every
    problem, the same that the board would find."""
    _require_team(team)
    signing = key or default_key()
    if signing is None:
        raise FarshiftError("answers to a window are signed by your team's key: farshift team --create makes it")
    given = draw if isinstance(draw, Draw) else read_draw(draw)
    sealed = sealed_benchmark(benchmark_of(given.terms), given)
    return pack([run], out, team=team, card=card, known={sealed.name: sealed}, key=signing)


def draw_of(board: BoardView, window: str) -> Draw:
    """The published draw of a window, from the board's files."""
    places = Places(window)
    board.file(places.inputs)
    card = board.file(places.card) or board.path / places.card
    return read_draw(card.parent)


def check_answers(file: Path | str, sealed: SealedBenchmark) -> tuple[Submission, ValidRun]:
    """A file of answers to a window, read and validated, and its one run."""
    path = Path(file)
    if not path.is_file():
        raise BadSubmission(f"{path} does not exist or is not a file")
    with path.open("rb") as content, Reader() as reader:
        submission = checked(content, path.name, reader, known={sealed.name: sealed})
    if len(submission.entries) != 1:
        raise BadSubmission(f"{path} has {len(submission.entries)} runs: answers to a window are one run")
    _require_team(submission.team)
    return submission, submission.entries[0]


def _require_team(team: str) -> None:
    """Refuse answers without a team."""
    if not team.strip():
        raise NotTaken("answers to a window need a team: the name that is shown (--team)")
