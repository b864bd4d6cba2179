"""The ledger: its records, its signed head, and proofs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import HTTPException

from ....core.errors import FarshiftError, first_line
from ...ledger.rotation import rotations
from ..answers import FOREVER, Stored, as_json, stored_answer
from ..history import History
from ..models import Consistency, Inclusion, Keys, Ledger, refused
from ..reading import Board

router = APIRouter(tags=["ledger"])

PAGE = 500
"""Records of a full page."""

Size = Annotated[int, Query(description="Records of the tree; all there are by default.", ge=0, le=1 << 53)]


@router.get("/ledger", response_model=Ledger, responses=refused(404))
def ledger(request: Request, board: Board, page: Annotated[int, Query(ge=0, le=1 << 40)] = 0) -> Response:
    """A page of records. Full pages never change, and may be kept for ever; the page after the last may be empty."""
    history = board.history()
    first, last = page * PAGE, (page + 1) * PAGE
    if first > history.size:
        raise HTTPException(404, f"the ledger has {history.size} records, {PAGE} on a page: there is no page {page}")
    full = last <= history.size
    answer = {
        "page": page,
        "size": last if full else history.size,
        "records": [one.__dict__ for one in history.records[first:last]],
        "next": page + 1 if full else None,
    }
    return stored_answer(request, as_json(answer), FOREVER if full else "public, no-cache")


@router.get(
    "/ledger/checkpoint",
    response_class=Response,
    responses=refused(404) | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def checkpoint(request: Request, board: Board) -> Response:
    """The number of records and their Merkle root, signed by the board: a C2SP tlog-checkpoint."""
    try:
        content = board.checkpoint()
    except FarshiftError as error:
        raise HTTPException(404, first_line(error)) from error
    return stored_answer(request, Stored(content, "text/plain; charset=utf-8"))


@router.get("/ledger/keys", response_model=Keys)
def keys(request: Request, board: Board) -> Response:
    """The board's first key, by which it is known, and the records that name the next, each signed by the key before
    it."""
    history = board.history()
    named = [one.__dict__ for one in rotations(history.records)]
    return stored_answer(request, as_json({"key": history.key, "rotations": named}))


@router.get("/ledger/proof/inclusion", response_model=Inclusion, responses=refused(404))
def inclusion(
    request: Request,
    board: Board,
    seq: Annotated[int, Query(description="The record's number.", ge=0, le=1 << 53)],
    size: Size | None = None,
) -> Response:
    """The audit path of a record (RFC 6962, 2.1.1)."""
    history = board.history()
    size = _size(history, size)
    if seq >= size:
        raise HTTPException(404, f"the first {size} records have no record {seq}")
    path = history.tree.inclusion(seq, size)
    answer = {"seq": seq, "size": size, "leaf": history.records[seq].hash, "root": history.tree.root(size).hex()}
    return stored_answer(request, as_json(answer | {"path": [node.hex() for node in path]}))


@router.get("/ledger/proof/consistency", response_model=Consistency, responses=refused(404))
def consistency(
    request: Request,
    board: Board,
    first: Annotated[int, Query(alias="from", description="Records of the earlier tree.", ge=0, le=1 << 53)],
    to: Size | None = None,
) -> Response:
    """The proof that the ledger extends its first `from` records (RFC 6962, 2.1.2)."""
    history = board.history()
    size = _size(history, to)
    if first > size:
        raise HTTPException(404, f"the first {size} records do not have the first {first} among them")
    tree = history.tree
    answer = {"from": first, "to": size, "from_root": tree.root(first).hex(), "to_root": tree.root(size).hex()}
    path = [node.hex() for node in tree.consistency(first, size)]
    return stored_answer(request, as_json(answer | {"path": path}))


def _size(history: History, size: int | None) -> int:
    if size is not None and size > history.size:
        raise HTTPException(404, f"the ledger has {history.size} records, not {size}")
    return history.size if size is None else size
