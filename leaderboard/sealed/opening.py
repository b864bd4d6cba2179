"""A window whose terms announced public randomness is drawn and opened once that is there: whoever has the beacon hands
it in. What was announced is taken and nothing else, so a board has no choice; each step can be repeated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, FarshiftError
from ..ledger.keys import signed_by
from .drand import randomness, read_beacon
from .draw_folder import benchmark_of
from .drawing import draw
from .randomness import BeaconRound, Shares
from .seal import enter_draw, secret_seed
from .shares import commitment_of, missing, of_shares, read_share, signed_hash
from .times import Clock, moment, utc_now
from .window import Window, find_window, windows

if TYPE_CHECKING:
    from ..board import Board


def open_window(board: Board, window: str, beacon: Path | str | None = None, clock: Clock = utc_now) -> Window:
    """Draw and open a window by its public randomness. Repeated after a crash it carries on; an open window stays as it
    is. `beacon`: a JSON file as drand's API gives it. `FarshiftError` where it is another round's, or too early or late
    to open."""
    with board.locked():
        found = find_window(board.ledger.records(), window)
        if found.opened is not None:
            return found
        terms = found.terms
        if terms.randomness is None:
            raise FarshiftError(f"window {found.name} has no public randomness: repeat farshift board seal")
        if (now := clock()) >= found.ends:
            raise FarshiftError(f"window {found.name} closed at {terms.closes} and was never opened: seal another")
        if found.published is None:
            if isinstance(terms.randomness, Shares):
                body = {"randomness": of_shares(found.name, found.shares).hex(), "missing": missing(found.shares)}
            else:
                body = _randomness(terms.randomness, beacon)
            if now < terms.randomness.due:
                raise FarshiftError(f"window {found.name} is drawn by {terms.randomness}: this clock is before that")
            board.ledger.append([("randomness", {"window": found.name, **body})])
            found = windows(board.ledger.records())[found.name]
        secret = secret_seed(board, found.name)
        if terms.commitment(secret) != found.commitment:
            raise FarshiftError(f"the seed of window {found.name} is not the committed one: put it back")
        benchmark = benchmark_of(terms)
        enter_draw(board, benchmark, terms, secret, draw(benchmark, found.drawn_by(secret)))
        return windows(board.ledger.records())[found.name]


def _randomness(announced: BeaconRound, beacon: Path | str | None) -> dict[str, Any]:
    """What the ledger has of the announced randomness."""
    if beacon is None:
        raise FarshiftError(f"the window is drawn by {announced}: give its beacon (--beacon FILE)")
    number, signature = read_beacon(beacon)
    if number != announced.number:
        raise FarshiftError(f"{beacon} is round {number}, and the window was announced with {announced}")
    found = randomness(announced.of, number, signature)
    return {"round": number, "signature": signature, "randomness": found.hex()}


def take_share(board: Board, file: Path | str, clock: Clock = utc_now) -> Window:
    """Take a share of a window's randomness: the commitment until all are due, the value after that and until it is
    due. One of each key; the same file again changes nothing. `FarshiftError` for another time or value."""
    said = read_share(file)
    key, now = said["key"], clock()
    with board.locked():
        found = find_window(board.ledger.records(), said["window"])
        terms, share = found.terms.randomness, found.shares.get(key)
        if not isinstance(terms, Shares):
            raise FarshiftError(f"window {found.name} is drawn by {found.sources}: it takes no shares")
        if "commitment" in said:
            if not signed_by(key, signed_hash(found.name, key, said["commitment"]), said["signature"]):
                raise BadData(f"{file} is not signed by the key that it names")
            if share is not None and share.commitment == said["commitment"]:
                return found
            if share is not None or now >= moment(terms.commits_by):
                why = "the key has committed to another" if share else f"they were due by {terms.commits_by}"
                raise FarshiftError(f"window {found.name} does not take this commitment: {why}")
            board.ledger.append([("share_committed", said)])
        else:
            if share is None or commitment_of(found.name, key, bytes.fromhex(said["value"])) != share.commitment:
                raise FarshiftError(f"the key committed to no such value for window {found.name}")
            if share.value is not None:
                return found
            if not moment(terms.commits_by) <= now < terms.due:
                span = f"from {terms.commits_by} to {terms.reveals_by}"
                raise FarshiftError(f"window {found.name} takes the values of shares {span}")
            board.ledger.append([("share_revealed", said)])
        return windows(board.ledger.records())[found.name]
