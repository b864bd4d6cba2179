"""Check that a submission belongs to its token's team."""

from __future__ import annotations

from ....core.text import escape_untrusted
from ...submission.validate import Submission
from ...teams import compute_fingerprint
from ...validation.archive import CARD
from ...validation.problem import Problems


def require_team(submission: Submission, team: str, team_key: str) -> None:
    """Raise `BadSubmission` if a submission belongs to another team than the token, or, if the token names a key, is
    not signed by that key."""
    problems = Problems()
    if submission.team != team:
        what = f"names the team {escape_untrusted(submission.team)!r}, but the token is for {escape_untrusted(team)!r}"
        problems.add("team-other", CARD, what, "team")
    if team_key and submission.team_key != team_key:
        whose = f"signed by the key {compute_fingerprint(submission.team_key)}" if submission.team_key else "not signed"
        problems.add(
            "team-other", CARD, f"is {whose}, but the token is for the key {compute_fingerprint(team_key)}", "signature"
        )
    problems.refuse_if_any("the submission")
