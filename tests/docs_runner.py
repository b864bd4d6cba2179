"""The examples of a page: read out of its Markdown, run in order, and held to what the page says that they print.

A fenced block is one of

    a file       its first line is a comment with its name: `# net.py`
    sh           commands
    python       a program
    text         what the block before it prints; … in a line stands for anything, … alone for any lines
    formula      a formula

A line of `text` that begins with `farshift: error:` is one on stderr, and says that the commands end with code 2.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

TOLERANCE = 0.02
"""How far a number with decimals may lie from the page's: other versions of a library train other models."""

ERROR = "farshift: error:"

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"# ([\w.-]+(?:/[\w.-]+)*\.\w+)\n")
_DECIMAL = re.compile(r"(-?\d+\.\d+)")


@dataclass(frozen=True)
class Example:
    """A block of a page. sort: file, sh or python; name: of a file; printed: what the page says that it prints, None
    where it does not say."""

    sort: str
    content: str
    name: str = ""
    printed: str | None = None


def sections(page: Path) -> dict[str, list[Example]]:
    """The examples of each section of a page that has some, by its heading of the second level."""
    heading, *rest = re.split(r"^## (.*)$", page.read_text("utf-8"), flags=re.MULTILINE)
    texts = dict(zip(["", *rest[::2]], [heading, *rest[1::2]], strict=True))
    result = {title: examples(text) for title, text in texts.items()}
    return {title: some for title, some in result.items() if some}


def examples(text: str) -> list[Example]:
    """The examples in a text, in order. `ValueError` for a block that could not be run or held to anything."""
    result: list[Example] = []
    end = -1
    for block in _FENCED.finditer(text):
        language, content = block.groups()
        named = _NAMED.match(content)
        if language == "formula":
            continue
        if language == "text":
            is_next = result and not text[end : block.start()].strip()
            if not is_next or result[-1].sort == "file" or result[-1].printed is not None:
                raise ValueError(f"output of nothing: {content}")
            result[-1] = replace(result[-1], printed=content)
        elif named:
            result.append(Example("file", content, named[1]))
        elif language in ("sh", "python"):
            result.append(Example(language, content))
        else:
            raise ValueError(f"neither a file nor a command: {content}")
        end = block.end()
    return result


def run(example: Example, folder: Path, environment: Mapping[str, str]) -> str:
    """Write an example's file into a folder, or run it there. Returns what is wrong with what it did; "" if nothing."""
    if example.sort == "file":
        path = folder / example.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(example.content, "utf-8")
        return ""
    program = ["bash", "-euo", "pipefail", "-c"] if example.sort == "sh" else [_python(environment), "-c"]
    done = subprocess.run(
        [*program, example.content],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    expected = example.printed or ""
    refused = any(line.startswith(ERROR) for line in expected.splitlines())
    if done.returncode != (2 if refused else 0):
        return f"exit code {done.returncode} of\n{example.content}\n{done.stdout}\n{done.stderr}"
    if example.printed is None:
        return ""
    last = done.stderr.splitlines()[-1:] if refused else []
    return difference([*done.stdout.splitlines(), *last], expected.splitlines())


def _python(environment: Mapping[str, str]) -> str:
    """The first Python on the path."""
    return shutil.which("python", path=environment.get("PATH")) or sys.executable


def difference(printed: list[str], expected: list[str]) -> str:
    """Where what was printed is not what was expected; "" if it is."""
    here, skips = 0, False
    for line in expected:
        if line == "…":
            skips = True
            continue
        reach = printed[here:] if skips else printed[here : here + 1]
        position = next((number for number, other in enumerate(reach) if alike(other, line)), None)
        if position is None:
            return f"not printed: {line!r}\n" + "\n".join(printed)
        here, skips = here + position + 1, False
    return "" if skips or here == len(printed) else f"printed beyond what the page says: {printed[here:]}"


def alike(printed: str, expected: str) -> bool:
    """Whether two lines say the same, numbers with decimals to within `TOLERANCE`."""
    pattern = "".join(
        r"(-?\d+\.\d+)" if _DECIMAL.fullmatch(piece) else re.escape(piece).replace("…", ".*")
        for piece in _DECIMAL.split(expected.rstrip())
    )
    result = re.fullmatch(pattern, printed.rstrip())
    if result is None:
        return False
    numbers = zip(result.groups(), _DECIMAL.findall(expected), strict=True)
    return all(abs(float(item) - float(other)) <= TOLERANCE for item, other in numbers)
