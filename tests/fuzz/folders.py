"""Mutated folders: one file of a run, an export or a board is damaged, looked at, and put back.

Case n of a name is always the same damage to the same file.
"""

from __future__ import annotations

import json
import os
import tomllib
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import tomli_w
from fuzz.draw import Draw
from fuzz.mutations import changed

CASES = int(os.environ.get("FARSHIFT_FUZZ_CASES", "300"))
"""How many cases the slow tests try: `make fuzz` says."""


def few_and_many(few: int, share: int = 1) -> pytest.MarkDecorator:
    """A test of `few` cases, and a slow one of as many as `CASES` / `share` others."""
    many = pytest.param(CASES // share, "slow", marks=pytest.mark.slow)
    return pytest.mark.parametrize(("cases", "name"), [(few, "fast"), many], ids=["few", "many_damaged"])


@contextmanager
def damaged(folder: Path, case: int, name: str) -> Iterator[str]:
    """While the context lasts a file of `folder` is not what it was; gives its path, relative to the folder.

    Of text the values are changed as often as the bytes; now and then a file is removed, emptied, or another's bytes
    are in its place."""
    draw = Draw(f"{name}/{case}")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = draw.one(files)
    before = file.read_bytes()
    what = draw.below(10)
    try:
        if what == 0:
            file.unlink()
        else:
            while (after := _other(draw, file, before, files, what)) == before:
                what = 9
            file.write_bytes(after)
        yield str(file.relative_to(folder))
    finally:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(before)


def _other(draw: Draw, file: Path, before: bytes, files: list[Path], what: int) -> bytes:
    if what == 1:
        return draw.one([b"", draw.one(files).read_bytes()])
    if what < 6:
        try:
            return _valued(draw, file, before)
        except (
            ValueError,
            TypeError,
            RecursionError,
            OverflowError,
        ):  # no text of values, or one that cannot be written
            pass
    return draw.damaged(before)


def _valued(draw: Draw, file: Path, before: bytes) -> bytes:
    if file.suffix == ".toml":
        return tomli_w.dumps(changed(draw, tomllib.loads(before.decode()))).encode("utf-8", "surrogatepass")
    if file.suffix == ".jsonl":
        lines = before.decode().splitlines()
        at = draw.below(len(lines))
        lines[at] = json.dumps(changed(draw, json.loads(lines[at])))
        return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
    if file.suffix == ".json":
        return json.dumps(changed(draw, json.loads(before))).encode("utf-8", "surrogatepass")
    raise ValueError(file.suffix)


def outcome_of(look: Callable[[], str]) -> str:
    """How a look fared: what it says, `refused` by an error of Farshift in plain text, or FAILED and what happened."""
    from farshift.core.errors import FarshiftError

    try:
        return look()
    except FarshiftError as error:
        return "refused" if str(error).strip() else "FAILED\nrefused without a word"
    except Exception:  # whatever it is, it is what is looked for
        return f"FAILED\n{traceback.format_exc()}"


def failures(folder: Path, cases: int, name: str, look: Callable[[], str]) -> tuple[dict[str, str], set[str]]:
    """What failed, by case and file; and all outcomes there were."""
    failed, seen = {}, set()
    for case in range(cases):
        with damaged(folder, case, name) as file:
            result = outcome_of(look)
        seen.add(result.split("\n")[0])
        if result.startswith("FAILED"):
            failed[f"case {case} of {name}: {file}"] = result
    return failed, seen


def bound(folder: Path) -> dict[str, object]:
    """All of an export that its ledger binds: every file, and the name and the key in its card."""
    result: dict[str, object] = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "board.toml"
    }
    from farshift.core.documents import read_toml

    card = read_toml(folder / "board.toml")
    return result | {name: card.get(name) for name in ("name", "key")}


def verified(folder: Path, whole: dict[str, object]) -> str:
    """Of a damaged export nothing is silently right but what says the same."""
    from farshift.leaderboard.operations.verify import verify_at

    result = verify_at(str(folder))
    if result.differences or result.not_recomputed:
        return "named"
    return "says the same" if bound(folder) == whole else "FAILED\nit verifies"
