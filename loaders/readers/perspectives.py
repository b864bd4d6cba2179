"""PERSPECTRUM: claims and the perspectives on them (Chen et al. 2019, arXiv 1906.03538)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from ...core.documents import read_json

_STANCES = {"UNDERMINE": 0, "SUPPORT": 1}


def read(files: dict[str, Path], *, claims: str, pool: str, parts: str) -> pa.Table:
    """Return a row for each pair of a claim and a perspective on it, in the order of the file of claims.

    Parameters:
        claims: the file of claims, each with its clusters of equivalent perspectives and their stance.
        pool: the file with the text of each perspective.
        parts: the file with the published part of each claim.

    Fields: `claim`, `perspective`, `supports` (0 undermines, 1 supports) and `origin` (the published part).
    """
    texts = {perspective["pId"]: perspective["text"] for perspective in read_json(files[pool])}
    part_of = read_json(files[parts])
    return pa.Table.from_pylist(
        [
            {
                "claim": claim["text"],
                "perspective": texts[number],
                "supports": _STANCES[cluster["stance_label_3"]],
                "origin": part_of[str(claim["cId"])],
            }
            for claim in read_json(files[claims])
            for cluster in claim["perspectives"]
            for number in cluster["pids"]
        ]
    )
