"""A benchmark small enough for a real runner in a test: give words back in reverse order; and a model for it."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

NAME = "echo/long"

_FILES = {
    "loaders/sources/echo.toml": """\
name = "echo"
version = 1
title = "Words, and the same in reverse order"
licence = "Apache-2.0"
citation = "An example"

[[fields]]
name = "words"
type = "string"
role = "input"

[[fields]]
name = "reply"
type = "string"
role = "label"

[[fields]]
name = "count"
type = "int64"
role = "meta"

[[distributions]]
name = "the generator"
generator = "echo"
""",
    "loaders/generators/echo.py": '''\
"""Words, and the same in reverse order: quotes, braces, dates and letters from beyond the first plane among them."""

import pyarrow as pa

WORDS = ["2020-01-01", "null", "{brace}", '"quoted"', "back\\\\slash", "na\\u00efve", "\\U0001f600", "line\\u2028break"]


def rows() -> pa.Table:
    texts = [[WORDS[(start * 3 + place) % 8] for place in range(count)] for count in range(1, 9) for start in range(8)]
    return pa.table(
        {
            "words": [" ".join(words) for words in texts],
            "reply": [" ".join(reversed(words)) for words in texts],
            "count": [len(words) for words in texts],
        }
    )
''',
    "echo-long.toml": """\
name = "echo/long"
version = 1
kind = "easy-to-hard"
title = "Up to five words train, more test"
label = "reply"
rule = "easy_to_hard/threshold"
source = { name = "echo" }
parameters = { field = "count", easy_at_most = 5, id_test = 12, seed = "echo/long@1" }
severity = { name = "words" }
""",
    "benchmarks/definitions/echo-long.toml": """\
name = "echo/long"
split = "echo/long@1"
title = "Give back more words in reverse order than ever shown"
task = { type = "sequence", inputs = ["words"], label = "reply" }
holdouts = [{ part = "train", to = "id_val", share = 0.25 }]
metrics = [{ name = "token_accuracy", version = 1 }, { name = "exact_match", version = 1 }]

[views]
id = { part = "id_test" }
ood = { part = "ood_test" }
all_harder = { part = "ood_test" }

[prompt]
k = 2
instruction = 'Reverse the "words" \u2014 {all of them}.'
example = "in: {words}\\nout: {reply}"
query = "in: {words}\\nout:"
separator = "\\n\\n"
stop = ["\\n", "\u00b6"]
max_tokens = 64
extraction = { name = "first_line", version = 1 }
""",
}


def echo_home(folder: Path) -> Path:
    """Put the benchmark `echo/long` into a folder that `FARSHIFT_PATH` names, its source pinned and its split frozen."""
    from farshift.core.errors import FarshiftError
    from farshift.loaders.freezing.freeze import freeze

    for name, content in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    source, draft, manifests = (
        folder / "loaders/sources/echo.toml",
        folder / "echo-long.toml",
        folder / "splits/manifests",
    )
    try:
        freeze(draft, manifests)
    except FarshiftError as error:
        pins = re.search(r'rows = (\d+) and digest = "([0-9a-f]{64})"', str(error))
        assert pins, error
        rows, digest = pins.groups()
        pinned = f'version = 1\nrows = {rows}\ndigest = "{digest}"\n'
        source.write_text(source.read_text("utf-8").replace("version = 1\n", pinned, 1), encoding="utf-8")
        freeze(draft, manifests)
    return folder


def reply_to(prompt: str) -> str:
    """What a model says that is mostly right: of some rows it reverses the words, of some it forgets one, to some it
    has nothing to say; always with more behind it than was asked for."""
    words = prompt.rsplit("in: ", 1)[1].removesuffix("\nout:").split(" ")
    kind = sha256(prompt.encode()).digest()[0] % 4
    if kind == 3:
        return "\n\nin: and so on"
    return " " + " ".join(reversed(words[kind == 2 :])) + "\n\nin: and so on"
