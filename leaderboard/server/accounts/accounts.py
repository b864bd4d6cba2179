"""Who sends a request, and whether it may be answered."""

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
    """owner: whose quotas count, `team NAME` or, without a token, `address A`. team, team_key: who a submission must
    be of; empty where anybody may be. token: the token's id, or empty."""

    owner: str
    team: str = ""
    team_key: str = ""
    token: str = ""

    @property
    def name(self) -> str:
        """For the audit."""
        return f"token {self.token}" if self.token else self.owner


class Accounts:
    """The accounts of one board."""

    def __init__(self, store: Store, settings: ServerSettings) -> None:
        self.store, self.settings = store, settings
        self.rates = RequestRates(settings.requests_a_minute)

    def admit(self, address: str) -> None:
        """Count a request of an address. Raises `HTTPProblem` (429) where there were too many."""
        self._count(f"address {address}")

    def sender(self, authorisation: str, address: str, scope: str) -> Sender:
        """Who sends a request with this `Authorization` header, for something that needs `scope`. Raises `HTTPProblem`:
        401 without a valid token, 403 where it is not for this, 429 after too many requests."""
        self.admit(address)
        if not authorisation:
            if self.settings.open:
                return Sender(f"address {address}")
            raise HTTPProblem.make(401, "a token of your team is needed: ask whoever runs this board for one")
        scheme, _, given = authorisation.partition(" ")
        match = find_token(self.store, given.strip()) if scheme.lower() == "bearer" else None
        if match is None:
            raise HTTPProblem.make(401, "this token is unknown here")
        token, state = match
        if state != "valid":
            raise HTTPProblem.make(401, f"this token is {state}: ask whoever runs this board for another")
        self._count(f"token {token.id}")
        if scope not in token.scopes:
            raise HTTPProblem.make(403, f"this token is for {', '.join(token.scopes)}, not for {scope}")
        return Sender(token.owner, token.team, token.team_key, token.id)

    def refused(self, sender: Sender, what: str, why: str) -> None:
        """Note a refusal for the audit."""
        commit_event(self.store, sender.name, what, owner=sender.owner, why=why)

    def _count(self, name: str) -> None:
        if after := self.rates.wait(name):
            raise HTTPProblem.make(429, "too many requests: wait a little", after)
