"""Images that combine the shape of one object with the texture of another (Geirhos et al. 2019, arXiv 1811.12231), and
the same shapes as edges and silhouettes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import attach_files, get_archive

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN = re.compile(r"([a-z]+)/(\1\d+)\.png")
_TEXTURED = re.compile(r"([a-z]+)/(\1\d+)-([a-z]+)\d+\.png")
"""Shape, photograph, and the texture of a file name."""


def pieces(files: dict[str, Any], *, shapes: list[str], kinds: dict[str, str], textured: str) -> Iterator[pa.Table]:
    """Fields: `image`, `shape` (its index in `shapes`), `kind`, `texture` (or "none") and `photograph`.

    `kinds` maps the trees without texture (airplane/airplane1.png) to their kind; in the tree `textured`
    (airplane/airplane1-bear2.png) the kind is "cue conflict", or "no conflict" if shape and texture agree.
    """
    places = {name: index for index, name in enumerate(shapes)}
    for tree, kind in [*kinds.items(), (textured, "")]:
        archive = get_archive(files, tree)
        form = _PLAIN if kind else _TEXTURED
        paths = sorted(archive.names())
        matches = [form.fullmatch(path) for path in paths]
        for path, fit in zip(paths, matches, strict=True):
            if not fit or not {fit[1], *fit.groups()[2:]} <= places.keys():
                raise BadData(f"{archive.where}: {path} is not an image of one of {', '.join(shapes)}")
        valid_matches = [fit for fit in matches if fit]
        yield from attach_files(
            archive,
            paths,
            {
                "shape": [places[fit[1]] for fit in valid_matches],
                "kind": [kind or ("no conflict" if fit[1] == fit[3] else "cue conflict") for fit in valid_matches],
                "texture": ["none" if kind else fit[3] for fit in valid_matches],
                "photograph": [fit[2] for fit in valid_matches],
            },
        )
