"""The raw texts of a language model, `outputs.jsonl` in a run's folder: for people; in no digest and no submission."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...core.documents import parse_json
from ...core.files import translate_os_errors

OUTPUTS = "farshift_outputs"
"""An optional attribute of models: the raw text of each row of the batch that was predicted last, or None."""

FILE = "outputs.jsonl"


def add_outputs(run: Path, named: Mapping[str, str | int], row_ids: Sequence[int], texts: Sequence[str | None]) -> None:
    """Append the texts of a batch to the file of an unfinished run. named: part, seed and candidate."""
    lines = [
        json.dumps({**named, "row_id": row_id, "output": text}) + "\n"
        for row_id, text in zip(row_ids, texts, strict=True)
        if text is not None
    ]
    with translate_os_errors(run, "choose another --out"), (run / FILE).open("a", encoding="utf-8") as file:
        file.write("".join(lines))


def read_outputs(run: Path, part: str, seed: int, candidate: str) -> dict[int, str]:
    """Return the texts by row id, the last of each; empty for a run without. A line that was cut off is passed over."""
    texts: dict[int, str] = {}
    try:
        lines = (run / FILE).read_text("utf-8", "replace").splitlines()
    except OSError:
        return texts
    for line in lines:
        try:
            record = parse_json(line, dict, surrogates=True)
            if (record["part"], record["seed"], record["candidate"]) == (part, seed, candidate):
                texts[int(record["row_id"])] = str(record["output"])
        except (ValueError, KeyError, TypeError):
            continue
    return texts
