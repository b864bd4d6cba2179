"""Coverage-guided fuzzing of the code that reads submissions, in one process (atheris, libFuzzer).

    python tests/fuzz/guided.py CORPUS -max_total_time=600 -timeout=10 -rss_limit_mb=1024

An input's first byte says which layer the rest stands for: the zip, submission.toml, run.toml, or the Parquet file (of
which the digests are made to fit). Cards are decoded in this process, so that the coverage of that guides too.
"""

from __future__ import annotations

import copy
import io
import sys
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

import atheris

with atheris.instrument_imports(include=["farshift.leaderboard", "tomllib"]):
    import tomllib  # noqa: F401

    from farshift.leaderboard.submission.validate import validate_open_submission
    from farshift.leaderboard.validation.limits import FileRejected
    from farshift.leaderboard.validation.problem import REMEDIES
    from farshift.leaderboard.validation.reader import answer_request
from farshift.core.errors import BadSubmission
from fuzz.bases import made, opened
from fuzz.kept import KeptReader
from fuzz.packing import Parts


class ReaderHere(KeptReader):
    """Cards are decoded in this process. Parquet is not: pyarrow aborts on some files, and so would the fuzzer."""

    def _ask(self, request: dict[str, Any], file: BinaryIO) -> BinaryIO:
        if request["what"] != "card":
            return super()._ask(request, file)
        import pyarrow as pa

        file.seek(0)
        out = tempfile.TemporaryFile()  # noqa: SIM115
        result = answer_request(request, pa.py_buffer(file.read()), out)
        if result["findings"]:
            raise FileRejected(result["findings"])
        out.seek(0)
        return out


def content_of(layer: int, rest: bytes, good: Parts) -> bytes:
    """The submission that an input stands for."""
    if layer == 0:
        return rest
    if layer == 1:
        return Parts(rest, good.run, good.predictions).packed()
    if layer == 2:
        return Parts(good.card, rest, good.predictions).packed()
    return Parts(copy.copy(good.card), copy.copy(good.run), rest).signed().packed()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        bases = made(Path(folder))
    known, reader = opened(), ReaderHere()
    corpus = Path(next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "corpus"))
    corpus.mkdir(exist_ok=True)
    for number, base in enumerate(bases):
        seeds = [base.packed(), *(entry.content for entry in base.listed())]
        for layer, seed in enumerate(seeds):
            (corpus / f"good-{number}-{layer}").write_bytes(bytes([layer + 4 * number]) + seed)

    def one(data: bytes) -> None:
        if not data:
            return
        content = content_of(data[0] % 4, data[1:], bases[data[0] // 4 % len(bases)])
        try:
            validate_open_submission(io.BytesIO(content), "s.zip", reader, known=known)
        except BadSubmission as refusal:
            assert refusal.problems
            assert all(problem.name in REMEDIES for problem in refusal.problems)

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
