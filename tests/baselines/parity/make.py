"""Makes the numbers of `numbers/` from a clone of released code.

    python -m tests.baselines.parity.make DRIVER CLONE [NAME ..]

DRIVER is a file of `drivers/`, which says in REPOSITORY and COMMIT what CLONE has to be, in FOLDER which folder of it is
imported (by default all of it), and has a function for each algorithm that calls the released code on the toy
(`toy.py`). The clone is imported, so it is trusted: give it only what you have read. Nothing of it is copied here, and
no test needs it.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from .problems import of
from .reference import Numbers, Reference


@dataclass(frozen=True)
class Made:
    """How the numbers of one algorithm are made: what a driver's MADE has for each name.

    call: runs the released code. The others are of `Reference`."""

    call: Callable[[], Numbers]
    code: str
    settings: Mapping[str, Any]
    problem: str = "steps"
    within: float = 1e-10
    remark: str = ""


def main(driver_name: str, clone: str, *names: str) -> None:
    """Make those that are named, or all of a driver, and say how far ours are from them."""
    driver = import_module(f".drivers.{driver_name}", __package__)
    folder = Path(clone) / getattr(driver, "FOLDER", "")
    if not folder.is_dir():
        sys.exit(f"{folder} is no folder: clone {driver.REPOSITORY} at {driver.COMMIT}")
    sys.path.insert(0, str(folder))
    for name, built in driver.MADE.items():
        if names and name not in names:
            continue
        reference = Reference(
            name,
            driver.REPOSITORY,
            driver.COMMIT,
            built.code,
            driver_name,
            built.call(),
            built.problem,
            built.settings,
            built.within,
            remark=built.remark,
        )
        measured = reference.measured(of(reference))
        measured.write()
        print(f"{name:24} {measured.difference:.1e} within {measured.within:.0e}")


if __name__ == "__main__":
    main(*sys.argv[1:])
