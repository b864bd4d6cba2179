"""Whose submissions a token may hand in: its team's."""

from __future__ import annotations

from ....core.listings.untrusted_text import escape_untrusted
from ...submission.validate import Submission
from ...teams import compute_fingerprint
from ...validation.archive import CARD
from ...validation.problem import Problems


def require_team(submission: Submission, team: str, team_key: str) -> None:
    """Refuse a submission of another team than a token's, or, where the token names a key, one that this key did not
    sign. Raises `BadSubmission`."""
    problems = Problems()
    if submission.team != team:
        what = f"is of the team {escape_untrusted(submission.team)!r}, and the token is of {escape_untrusted(team)!r}"
        problems.add("team-other", CARD, what, "team")
    if team_key and submission.team_key != team_key:
        whose = f"signed by the key {compute_fingerprint(submission.team_key)}" if submission.team_key else "not signed"
        problems.add(
            "team-other", CARD, f"is {whose}, and the token is for the key {compute_fingerprint(team_key)}", "signature"
        )
    problems.refuse_if_any("the submission")
