"""The sender of a request, and whether the request is permitted."""

from __future__ import annotations

from dataclasses import dataclass

from ...ledger.store import Store
from ..http_problem import HTTPProblem
from ..settings import ServerSettings
from .audit import commit_event
from .rates import RequestRates
from .tokens import find_token


@dataclass(frozen=True)
class Sender:
    """The sender of a request. owner: whose quotas count, `team NAME` or, without a token, `address A`. team, team_key:
    the team that submissions must belong to; empty for any team. token: the token's id, or empty."""

    owner: str
    team: str = ""
    team_key: str = ""
    token: str = ""

    @property
    def name(self) -> str:
        """The sender's name in the audit log."""
        return f"token {self.token}" if self.token else self.owner


class Accounts:
    """The accounts of one board."""

    def __init__(self, store: Store, settings: ServerSettings) -> None:
        self.store, self.settings = store, settings
        self.rates = RequestRates(settings.requests_a_minute)

    def admit(self, address: str) -> None:
        """Count a request from an address. Raises `HTTPProblem` (429) if there were too many."""
        self._count(f"address {address}")

    def sender(self, authorisation: str, address: str, scope: str) -> Sender:
        """Return the sender of a request with this `Authorization` header that needs `scope`. Raises `HTTPProblem`: 401
        without a valid token, 403 if the token lacks the scope, 429 after too many requests."""
        self.admit(address)
        if not authorisation:
            if self.settings.open:
                return Sender(f"address {address}")
            raise HTTPProblem.make(401, "a token of your team is required: ask the board's operator for one")
        scheme, _, given = authorisation.partition(" ")
        match = find_token(self.store, given.strip()) if scheme.lower() == "bearer" else None
        if match is None:
            raise HTTPProblem.make(401, "this board does not know the token")
        token, state = match
        if state != "valid":
            raise HTTPProblem.make(401, f"this token is {state}: ask the board's operator for a new one")
        self._count(f"token {token.id}")
        if scope not in token.scopes:
            raise HTTPProblem.make(403, f"this token has the scope {', '.join(token.scopes)}, not {scope}")
        return Sender(token.owner, token.team, token.team_key, token.id)

    def refused(self, sender: Sender, what: str, why: str) -> None:
        """Record a refusal in the audit log."""
        commit_event(self.store, sender.name, what, owner=sender.owner, why=why)

    def _count(self, name: str) -> None:
        if after := self.rates.wait(name):
            raise HTTPProblem.make(429, "too many requests: try again later", after)
