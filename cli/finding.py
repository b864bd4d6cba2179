"""Options that search the catalogues: `farshift splits list`, `farshift benchmarks list`."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

Words = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Argument(metavar="[WORD]...", help="Search words; all must occur in the name, title, source .."),
]
OfKind = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--kind", metavar="K", help="Kind of shift: domain, length, compositional, easy-to-hard or corrupted-label."
    ),
]
OfSource = Annotated[Optional[str], typer.Option("--source", metavar="S", help="Source name.")]  # noqa: UP045
OfModality = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--modality", metavar="M", help="Modality: text, image, audio, tabular or array."),
]
Generated = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option("--generated/--real", help="Only generated data, or only collected data (default: both)."),
]
OfState = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--state", metavar="S", help="State: frozen, definition, or pulled (a definition frozen on this machine)."
    ),
]
OfLicence = Annotated[str, typer.Option("--licence", metavar="L", help="Words in the licence: CC0, MIT ..")]
