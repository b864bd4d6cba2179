"""How large the product is, and how deep a training: lines and files, those of the engine, calls down to `backward`.

Content are the folders of one-file plug-ins below; everything else of the product is the engine. Each bound is what
was last reached, not the goal: lower it when the product gets smaller. Prints a table, and exits 1 where a bound is
exceeded.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

CONTENT = (
    "baselines/algorithms",
    "baselines/backbones",
    "baselines/networks",
    "benchmarks/adapters",
    "benchmarks/metrics",
    "loaders/generators",
    "loaders/readers",
    "splits/rules",
)

GOALS = {"lines": 65_000, "files": 600, "engine lines": 32_000, "calls": 15, "call files": 8}
BOUNDS = {"lines": 87_050, "files": 755, "engine lines": 58_880, "calls": 15, "call files": 8}


def list_product() -> list[Path]:
    """The Python files of the product, sorted."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in sorted(listed.split()) if not name.startswith(("tests/", "docs/", ".ci/"))]


def count_lines(files: list[Path]) -> int:
    return sum(len((ROOT / file).read_text("utf-8").splitlines()) for file in files)


def find_calls() -> list[traceback.FrameSummary]:
    """The calls of the product between the command `farshift run` and the first `backward` of a training."""
    import torch
    from farshift.cli import main

    seen: list[traceback.FrameSummary] = []
    backward = torch.Tensor.backward

    def look(*arguments: object, **options: object) -> object:
        if not seen:
            frames = [frame for frame in traceback.extract_stack() if _is_product(Path(frame.filename))]
            command = next(number for number, frame in enumerate(frames) if frame.name == "run")
            seen.extend(frames[command:])
        return backward(*arguments, **options)  # type: ignore[arg-type]

    torch.Tensor.backward = look  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        options = [
            "--on",
            "modadd97/xi35",
            "--seeds",
            "1",
            "--steps",
            "2",
            "--budget",
            "quick",
            "--out",
            f"{folder}/run",
        ]
        sys.argv = ["farshift", "run", "mlp", *options]
        try:
            main()
        except SystemExit:
            pass
        finally:
            torch.Tensor.backward = backward  # type: ignore[method-assign]
    return seen


def _is_product(file: Path) -> bool:
    try:
        parts = file.resolve().relative_to(ROOT).parts
    except ValueError:
        return False
    return not parts[0].startswith(".") and parts[0] not in ("tests", "docs")


def main() -> None:
    product = list_product()
    engine = [file for file in product if not file.as_posix().startswith(CONTENT)]
    calls = find_calls()
    measured = {
        "lines": count_lines(product),
        "files": len(product),
        "engine lines": count_lines(engine),
        "calls": len(calls),
        "call files": len({frame.filename for frame in calls}),
    }
    print(f"\n{'':24}{'now':>9}{'bound':>9}{'goal':>9}")
    for name, value in measured.items():
        print(f"{name:24}{value:>9,}{BOUNDS[name]:>9,}{GOALS[name]:>9,}")
    print("from farshift run to backward:")
    for frame in calls:
        print(f"  {Path(frame.filename).resolve().relative_to(ROOT)}: {frame.name}")
    exceeded = [name for name, value in measured.items() if value > BOUNDS[name]]
    if exceeded or not calls:
        sys.exit(f"larger than before: {', '.join(exceeded) or 'no training was seen'}")


if __name__ == "__main__":
    main()
