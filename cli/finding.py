"""Options by which the catalogues are searched: `farshift splits list`, `farshift benchmarks list`."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

Words = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Argument(metavar="[WORD]...", help="Only what has all these words in its name, title, source .."),
]
OfKind = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--kind", metavar="K", help="domain, length, compositional, easy-to-hard or corrupted-label."),
]
OfSource = Annotated[Optional[str], typer.Option("--source", metavar="S", help="The source's name.")]  # noqa: UP045
OfModality = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--modality", metavar="M", help="text, image, audio, tabular or array."),
]
Generated = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option("--generated/--real", help="Rows that a generator makes, or data that were collected."),
]
OfState = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--state", metavar="S", help="frozen, definition, or pulled (a definition, frozen here)."),
]
OfLicence = Annotated[str, typer.Option("--licence", metavar="L", help="Words of the licence: CC0, MIT ..")]
