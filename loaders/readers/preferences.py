"""Preferences: two replies to a dialogue, and which of them people chose."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ...core.documents import parse_json
from ...core.draws import draw_below
from ...core.errors import BadData

_TURN = "\n\nAssistant:"


def read(files: dict[str, Path], *, constants: Mapping[str, dict[str, str]], seed: str) -> Iterator[pa.Table]:
    """Yield a table for each of gzipped files of JSON lines with the dialogues `chosen` and `rejected`, as in HH-RLHF
    (Bai et al. 2022, arXiv 2204.05862). What both have in common, up to the start of the assistant's last common turn,
    is the prompt. A draw by `seed`, the file's name and the line decides which reply comes first.

    Fields: `prompt`, `first`, `second` (the replies), `chosen` (0 the first, 1 the second), `number` (the line, from 0)
    and those of `constants`, which are the same in all rows of a file.
    """
    for name in sorted(constants):
        # Lines of bytes: a text may have other ends of lines within, such as U+2028.
        lines = gzip.decompress(files[name].read_bytes()).splitlines()
        number = np.arange(len(lines), dtype=np.uint64)
        chosen = draw_below(f"{seed}/{name}", number, 2).astype(np.int64)
        columns: dict[str, list[Any]] = {"prompt": [], "first": [], "second": []}
        for index, line in enumerate(lines):
            where = f"{name}: line {index + 1}"
            pair = parse_json(line, dict, where)
            prompt, *replies = split_dialogues(pair["chosen"], pair["rejected"], where)
            columns["prompt"].append(prompt)
            columns["first"].append(replies[chosen[index]])
            columns["second"].append(replies[1 - chosen[index]])
        fixed = {key: [value] * len(lines) for key, value in constants[name].items()}
        yield pa.table({**columns, "chosen": chosen, "number": number.astype(np.int64), **fixed})


def split_dialogues(chosen: str, rejected: str, where: str) -> tuple[str, str, str]:
    """Split two dialogues into the common prompt, which ends before a turn of the assistant, and what follows in each.
    Raises `BadData` if no turn of the assistant begins alike in both."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(chosen, rejected, strict=False)))
    start = chosen.rfind(_TURN, 0, common)
    if start < 0:
        raise BadData(f"{where}: the dialogues have no turn of the assistant that begins alike")
    reply = start + len(_TURN)
    return chosen[:start].strip(), chosen[reply:].strip(), rejected[reply:].strip()
