"""Verification of a board's sealed windows: from the ledger, the files that it names, and,
once a window is revealed, its seed, from which the draw, its profile and every score are made again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from ...benchmarks.benchmark import SCORER
from ...core.canonical import canonical_json
from ...core.errors import FarshiftError, MissingExtra, Unavailable
from .answers import check_answers
from .benchmark import SealedBenchmark, sealed_benchmark
from .deadlines import deadline_problems, last_moment
from .draw_folder import Draw, benchmark_of, inputs_digest, inputs_of, read_draw
from .drawing import CIPHER, draw
from .scoring import predictions_digest, result
from .times import Clock, utc_now
from .window import Places, Recorded, Window, team_id, windows


class Copied(Protocol):
    """A board's folder, or an export of it."""

    def file(self, path: str) -> Path | None: ...


def verify_sealed(copy: Copied, records: Sequence[Recorded], clock: Clock = utc_now) -> tuple[list[str], list[str]]:
    """What is wrong with the windows of a board, and what could not be recomputed here, with why. That the files are
    those that the ledger names is checked before, with all others. What is due by `clock`, or by the time of the newest
    record, and was not done is wrong."""
    differences = _out_of_order(records)
    not_recomputed: list[str] = []
    try:
        found = windows(records)
        now = last_moment(records, clock())
    except FarshiftError as error:
        return [*differences, str(error)], []
    draw_problems = partial(_verify_draw, copy=copy, not_recomputed=not_recomputed)
    checks = (_teams, partial(deadline_problems, now=now), draw_problems)
    for window in found.values():
        for check in checks:
            try:
                differences += [f"window {window.name}: {problem}" for problem in check(window)]
            except (Unavailable, MissingExtra) as error:
                not_recomputed.append(f"window {window.name}: {error}")
            except FarshiftError as error:
                differences.append(f"window {window.name}: {error}")
    return differences, not_recomputed


_BEFORE = {
    "window_opened": ("seed_committed", "was opened before the board committed to a seed"),
    "submitted": ("window_opened", "took answers before it was opened"),
    "window_closed": ("window_opened", "was closed before it was opened"),
    "scored": ("window_closed", "had answers scored before it was closed"),
    "seed_revealed": ("window_closed", "was revealed before it was closed"),
}
_ONCE = ("seed_committed", "window_opened", "window_closed", "seed_revealed")


def _out_of_order(records: Sequence[Recorded]) -> list[str]:
    """Windows whose records stand in an order that no board writes."""
    problems = []
    seen: set[tuple[str, str]] = set()
    for record in records:
        window = record.body.get("window")
        if not isinstance(window, str) or record.kind not in (*_BEFORE, *_ONCE):
            continue
        needed, problem = _BEFORE.get(record.kind, ("", ""))
        if needed and (window, needed) not in seen:
            problems.append(f"window {window[:80]} {problem} (record {record.seq})")
        if record.kind == "submitted" and (window, "window_closed") in seen:
            problems.append(f"window {window[:80]} took answers after it was closed (record {record.seq})")
        if record.kind in _ONCE and (window, record.kind) in seen:
            problems.append(f"window {window[:80]} has a second record {record.kind} (record {record.seq})")
        seen.add((window, record.kind))
    return problems


def _verify_draw(window: Window, copy: Copied, not_recomputed: list[str]) -> list[str]:
    problems: list[str] = []
    if window.opened is None:
        return problems
    if window.secret is not None and window.terms.commitment(window.secret) != window.commitment:
        problems.append("the revealed seed is not the one that was committed to")
    try:
        benchmark_of(window.terms)
    except FarshiftError as error:
        not_recomputed.append(f"window {window.name}: {error}")
        return problems
    if window.terms.cipher != CIPHER:
        problems.append(f"its rows are drawn by {window.terms.cipher[:40]!r}, and no version draws by it")
    places = Places(window.name)
    files = [copy.file(path) for path in (places.card, places.inputs, places.profile)]
    if any(file is None for file in files):
        return problems  # missing: reported with all missing files
    card, _, profile = (file for file in files if file is not None)
    given = read_draw(card.parent)
    if (given.terms, given.commitment) != (window.terms, window.commitment):
        problems.append("draw.toml says other terms, or another commitment, than the ledger")
    if (given.digest, given.inputs.num_rows) != (window.opened.get("inputs"), window.opened.get("rows")):
        problems.append("the published inputs are not those that the ledger names")
    if window.secret is not None and not problems:
        problems += _verify_revealed(copy, window, given, profile.read_bytes(), not_recomputed)
    return problems


def _teams(window: Window) -> list[str]:
    names = [team_id(body) for body in window.answers.values()]
    return [f"team {name} has more than one submission" for name in sorted(set(names)) if names.count(name) > 1]


def _verify_revealed(copy: Copied, window: Window, given: Draw, profile: bytes, not_recomputed: list[str]) -> list[str]:
    assert window.secret is not None
    problems = []
    public = benchmark_of(window.terms)
    drawn = draw(public, window.drawn_by(window.secret))
    if inputs_digest(inputs_of(drawn.rows, public), public) != given.digest:
        return ["the revealed seed gives another draw than the published one"]
    if canonical_json(drawn.profile) != profile:
        problems.append("its draw compares with the public test otherwise than profile.json says")
    sealed = sealed_benchmark(public, given, drawn)
    for digest in window.answers:
        if digest not in window.scores:
            problems.append(f"answers {digest[:12]}.. were never scored")
    for digest in window.scores:
        problems += _verify_score(copy, window, sealed, digest, not_recomputed)
    return problems


def _verify_score(
    copy: Copied, window: Window, sealed: SealedBenchmark, digest: str, not_recomputed: list[str]
) -> list[str]:
    places, which = Places(window.name), f"answers {digest[:12]}.. of {window.scores[digest].get('team')!r}"
    if digest not in window.answers:
        return [f"{which} have a score and were never submitted"]
    answers, score = copy.file(places.answers(digest)), copy.file(places.score(digest))
    if answers is None or score is None:
        return []  # reported with all missing files
    content = score.read_bytes()
    said: dict[str, Any] = json.loads(content)
    made = (said.get("score") or {}).get("scorer", SCORER)
    if made != SCORER:
        why = f"scored by scorer {made}, and this version has scorer {SCORER}"
        not_recomputed.append(f"window {window.name}: {which}: {why}")
        return []
    submission, entry = check_answers(answers, sealed)
    problems = []
    if submission.team != window.answers[digest].get("team"):
        problems.append(f"{which} are of team {submission.team!r} by their own card")
    if submission.team_key != window.answers[digest].get("signed_by", ""):
        problems.append(f"{which} are signed by {submission.team_key or 'nobody'}, and the ledger says otherwise")
    if "predictions" in window.scores[digest] and window.scores[digest]["predictions"] != predictions_digest(entry):
        problems.append(f"{which} have other predictions than the digest in the ledger")
    if canonical_json(result(sealed, entry)) != content:
        problems.append(f"{which}: computed again, their score differs")
    return problems
