"""Verification of a board's sealed windows, from the ledger and the files that it names. Once a window is revealed, its
draw, profile and every score are recomputed from the seed.

The times are set by the board itself. They are bounded from outside: every record precedes the later ones, so a head of
the ledger that somebody saw or signed existed by then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from ...benchmarks.benchmark import SCORER
from ...core.canonical import to_canonical_json
from ...core.documents import parse_json
from ...core.errors import FarshiftError, MissingExtra, Unavailable
from ..ledger.record import Record
from ..tables.table import OWN
from .drawing import CIPHER, draw_sealed_rows
from .published import (
    PublishedDraw,
    SealedBenchmark,
    compute_inputs_digest,
    find_window_benchmark,
    make_sealed_benchmark,
    read_draw,
    select_inputs,
)
from .seal import score_answers
from .submit import check_answers
from .window import Clock, Window, get_utc_time, get_window_path, parse_time, read_windows


def verify_sealed(
    files: Mapping[str, Path], records: Sequence[Record], clock: Clock = get_utc_time
) -> tuple[list[str], list[str]]:
    """Return the problems of a board's windows, and what could not be recomputed here, with the reason. The files'
    digests are checked elsewhere, together with all other files. A step that is overdue by `clock`, or by the time of
    the newest record, is a problem."""
    differences = _find_disorder(records)
    not_recomputed: list[str] = []
    try:
        known_windows = read_windows(records)
        now = max([clock(), *(parse_time(record.time) for record in records)])
    except FarshiftError as error:
        return [*differences, str(error)], []
    draw_problems = partial(_verify_draw, files=files, not_recomputed=not_recomputed)
    checks = (_find_repeated_teams, partial(find_deadline_problems, now=now), draw_problems)
    for window in known_windows.values():
        for check in checks:
            try:
                differences += [f"window {window.name}: {problem}" for problem in check(window)]
            except (Unavailable, MissingExtra) as error:
                not_recomputed.append(f"window {window.name}: {error}")
            except FarshiftError as error:
                differences.append(f"window {window.name}: {error}")
    return differences, not_recomputed


def _find_disorder(records: Sequence[Record]) -> list[str]:
    """Problems in the order of windows' records."""
    problems = []
    opened, revealed = set[str](), set[str]()
    for record in records:
        window, what = record.body.get("window"), ""
        if not isinstance(window, str):
            continue
        if record.kind == "window_opened":
            what = "was opened twice" if window in opened else ""
            opened.add(window)
        elif record.kind in ("submitted", "scored", "seed_revealed"):
            if window not in opened:
                what = f"has a record {record.kind} before it was opened"
            elif window in revealed:
                what = f"has a record {record.kind} after its seed was revealed"
            elif record.kind == "submitted" and str(record.body.get("received", record.time)) > record.time:
                what = "received a submission after it was recorded"
            if record.kind == "seed_revealed":
                revealed.add(window)
        if what:
            problems.append(f"window {window[:80]} {what} (record {record.seq})")
    return problems


def _verify_draw(window: Window, files: Mapping[str, Path], not_recomputed: list[str]) -> list[str]:
    problems: list[str] = []
    if window.secret is not None and window.terms.commitment(window.secret) != window.commitment:
        problems.append("the revealed seed does not match the commitment")
    try:
        find_window_benchmark(window.terms)
    except FarshiftError as error:
        not_recomputed.append(f"window {window.name}: {error} ({OWN})")
        return problems
    if window.terms.cipher != CIPHER:
        problems.append(f"its cipher {window.terms.cipher[:40]!r} is unknown")
    card, inputs, profile = (files.get(get_window_path(window.name, file)) for file in ("card", "inputs", "profile"))
    if card is None or inputs is None or profile is None:
        return problems  # missing: reported with all missing files
    published_draw = read_draw(card.parent)
    if (published_draw.terms, published_draw.commitment) != (window.terms, window.commitment):
        problems.append("the terms or the commitment in draw.toml differ from the ledger's")
    if (published_draw.digest, published_draw.inputs.num_rows) != (
        window.opened.get("inputs"),
        window.opened.get("rows"),
    ):
        problems.append("the published inputs do not match the ledger")
    if window.secret is not None and not problems:
        problems += _verify_revealed(files, window, published_draw, profile.read_bytes(), not_recomputed)
    return problems


def _find_repeated_teams(window: Window) -> list[str]:
    keys = [str(body.get("signed_by")) for body in window.answers.values()]
    return [f"the key {key} has more than one submission" for key in sorted(set(keys)) if keys.count(key) > 1]


def _verify_revealed(
    files: Mapping[str, Path], window: Window, published_draw: PublishedDraw, profile: bytes, not_recomputed: list[str]
) -> list[str]:
    assert window.secret is not None
    problems = []
    public = find_window_benchmark(window.terms)
    drawn = draw_sealed_rows(public, window.secret)
    if compute_inputs_digest(select_inputs(drawn.rows, public), public) != published_draw.digest:
        return ["the revealed seed gives a draw that differs from the published one"]
    if to_canonical_json(drawn.profile) != profile:
        problems.append("the comparison of its draw with the public test differs from profile.json")
    sealed = make_sealed_benchmark(public, published_draw, drawn)
    for digest in window.answers:
        if digest not in window.scores:
            problems.append(f"submission {digest[:12]}.. was never scored")
    for digest in window.scores:
        problems += _verify_score(files, window, sealed, digest, not_recomputed)
    return problems


def _verify_score(
    files: Mapping[str, Path], window: Window, sealed: SealedBenchmark, digest: str, not_recomputed: list[str]
) -> list[str]:
    which = f"submission {digest[:12]}.. of {window.scores[digest].get('team')!r}"
    if digest not in window.answers:
        return [f"{which} has a score but was never submitted"]
    answers, score = (files.get(get_window_path(window.name, file, digest)) for file in ("answers", "score"))
    if answers is None or score is None:
        return []  # reported with all missing files
    content = score.read_bytes()
    score_record: dict[str, Any] = parse_json(content, dict, which)
    scorer = (score_record.get("score") or {}).get("scorer", SCORER)
    if scorer != SCORER:
        why = f"scored by scorer {scorer}; this version has scorer {SCORER}"
        not_recomputed.append(f"window {window.name}: {which}: {why}")
        return []
    submission, entry = check_answers(answers, sealed)
    problems = []
    if submission.card.team != window.answers[digest].get("team"):
        problems.append(f"{which} names the team {submission.card.team!r} in its own card")
    if submission.team_key != window.answers[digest].get("signed_by"):
        problems.append(f"{which} is signed by {submission.team_key or 'nobody'}, which differs from the ledger")
    if to_canonical_json(score_answers(sealed, entry)) != content:
        problems.append(f"{which}: its recomputed score differs")
    return problems


GRACE = timedelta(seconds=60)
"""The delay allowed between the check of a time and the record in the ledger."""


def find_deadline_problems(window: Window, now: datetime) -> list[str]:
    """List every step that was done too early or too late, or is overdue `now`."""
    terms, problems = window.terms, []
    for kind, what in (("scored", "scored"), ("seed_revealed", "revealed")):
        if kind in window.when and parse_time(window.when[kind]) < window.ends:
            problems.append(f"was {what} at {window.when[kind]}, before its closing time ({terms.closes})")
    for digest, time in window.times.items():
        if not parse_time(window.when.get("window_opened", time)) <= parse_time(time) < window.ends + GRACE:
            problems.append(f"submission {digest[:12]}.. was accepted at {time}, outside the window")
    revealed, due = window.when.get("seed_revealed"), parse_time(terms.reveals) + GRACE
    if revealed is None and now > due:
        problems.append(f"was never revealed (due by {terms.reveals})")
    elif revealed is not None and parse_time(revealed) > due:
        problems.append(f"was revealed at {revealed} (due by {terms.reveals})")
    return problems
