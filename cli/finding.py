"""Options that search the catalogues: `farshift splits list`, `farshift benchmarks list`."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

Words = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Argument(
        metavar="WORD",
        help="Search words; all of them must occur in the name, title or another field of an entry.",
    ),
]
OfKind = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--kind", metavar="KIND", help="Kind of shift: domain, length, compositional, easy-to-hard or corrupted-label."
    ),
]
OfSource = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--source", metavar="SOURCE", help="Name of the data source, such as scan."),
]
OfModality = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--modality", metavar="MODALITY", help="Modality: text, image, audio, tabular or array."),
]
Generated = Annotated[
    Optional[bool],  # noqa: UP045
    typer.Option(
        "--generated/--real", help="Only generated (synthetic) data, or only collected (real) data (default: both)."
    ),
]
OfState = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--state",
        metavar="STATE",
        help="State: frozen (the package has the digests of all rows), definition (not frozen yet), or pulled (a "
        "definition that was frozen on this machine).",
    ),
]
OfLicence = Annotated[
    str, typer.Option("--licence", metavar="TEXT", help="Words that the licence must contain, such as CC0.")
]
