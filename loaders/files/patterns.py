"""Path patterns: one notation for local files, archives, the web and the Hub.

`*` matches any part of a file's or folder's name, `?` one character, `[abc]`, `[a-f]` and `[!abc]` one of a set; `**`
matches any number of folders. `{000..011}` expands to numbers of that many digits, each of which has to exist. A file
or folder whose name is exactly the text of the pattern is matched literally, whatever characters the name has.

Where files are selected in a folder, an archive or a data set (`ignore`, `accept`, `members`, `each`), a pattern
without `/` matches names at any depth, and one that matches a folder selects all files in it.

Hidden files are not data: those that systems and tools add to folders, and all names that begin with a dot.

In patterns with named parts, `{domain}/{category}/{file}`, a part matches as little of one name as possible. A last
part called `file` matches the rest, including folders. `{name:REGEX}` restricts a part.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from ...core.errors import BadDefinition, Unavailable
from ...core.progress import log_message

DESKTOP_FILES = (".DS_Store", "Thumbs.db", "desktop.ini")
"""Files that operating systems add to folders they display. `FolderFiles` does not list them."""

_SYSTEMS = {
    *map(str.lower, DESKTOP_FILES),
    "ehthumbs.db",
    "__macosx",
    "@eadir",
    "$recycle.bin",
    "system volume information",
}

REST = "file"
_MOST_NUMBERS = 100_000

_NUMBERS = r"(?P<numbers>\{(?P<first>\d+)\.\.(?P<last>\d+)\})"
_NAMED = r"\{(?P<name>[a-z][a-z0-9_]*)(?::(?P<form>(?:[^{}]|\{\d+(?:,\d*)?\})+))?\}"
_TOKEN = re.compile(
    rf"{_NAMED}|{_NUMBERS}|(?<![^/])(?P<deep>\*\*)(?P<below>/|$)|(?P<star>\*+)|(?P<one>\?)"
    r"|\[(?P<not>!?)(?P<some>\]?[^]/]*)\]"
)
_PART = re.compile(_NAMED)


class PathPattern:
    """A pattern of paths and its named parts. Without `named`, braces with a name in them are literal text."""

    def __init__(self, text: str, named: bool = True) -> None:
        self.text = text
        self.parts: list[str] = []
        regex, end = "", 0
        for token in _TOKEN.finditer(text):
            if token["name"] and not named:
                continue
            regex += _escape_text(text, text[end : token.start()], named)
            end = token.end()
            regex += self._named(token, end == len(text)) if token["name"] else _make_wildcard_regex(token)
        regex += _escape_text(text, text[end:], named)
        try:
            self._regex = re.compile(regex, re.DOTALL)
        except re.error as error:
            raise BadDefinition(f"invalid pattern {text!r}: {error}") from error

    def _named(self, token: re.Match[str], last: bool) -> str:
        name = token["name"]
        if name in self.parts:
            raise BadDefinition(f"the pattern {self.text!r} names {{{name}}} twice")
        self.parts.append(name)
        return f"(?P<{name}>{token['form'] or ('.+' if name == REST and last else '[^/]+?')})"

    def fits(self, path: str) -> dict[str, str] | None:
        """Return the named parts of a path; None if it does not match."""
        match = self._regex.fullmatch(path)
        return match.groupdict() if match else None

    def filled(self, values: Mapping[str, str]) -> str:
        """Return the path with these parts. Each part of the pattern needs a value."""
        if is_pattern(_PART.sub("", self.text)):
            raise BadDefinition(f"the pattern {self.text!r} has a part without a name, which rows cannot fill")
        return _PART.sub(lambda part: values[part["name"]], self.text)


def is_pattern(text: str) -> bool:
    """Whether a text without named parts is a pattern and not the name of one file."""
    return any(not token["name"] for token in _TOKEN.finditer(text))


def has_parts(text: str) -> bool:
    """Whether a text has named parts."""
    return bool(_PART.search(text))


def expand_numbers(text: str) -> list[str]:
    """Expand `shard-{000..011}.tar` to its texts, in order; the text itself if it has no numbers."""
    texts = [text]
    while (match := re.search(_NUMBERS, texts[0])) is not None:
        numbers = _expand_range(text, match["first"], match["last"])
        texts = [template.replace(match["numbers"], number, 1) for template in texts for number in numbers]
        if len(texts) > _MOST_NUMBERS:
            raise BadDefinition(f"{text}: more than {_MOST_NUMBERS:,} files")
    return texts


def find_files(pattern: str, beside: Path) -> list[Path]:
    """Return the local files of a path or pattern, relative to the folder `beside`: numbers in order, other files by
    name. Hidden files that match a wildcard are ignored with a message. Raises `Unavailable` if there is none."""
    if any(letter < " " for letter in pattern):
        raise BadDefinition(f"{pattern!r} is not a path: it has control characters")
    base, steps = _split_existing(Path(pattern).parts, beside)
    if not steps:
        if base.is_dir():
            raise BadDefinition(f"{pattern!r} is a folder: give a pattern of its files, as in folder/*.csv")
        return [base]
    depth = None if "**" in steps else len(steps)
    return [base / path for path in select_paths(_walk_files(base, depth), "/".join(steps), base)]


def select_paths(paths: Iterable[str], pattern: str, base: Path | None = None) -> list[str]:
    """Select from a list (of the files in `base`) the paths that match a path or pattern, as `find_files`. Raises
    `Unavailable` if none does."""
    _compile_pattern(pattern)  # raises an error for an invalid pattern even if no file exists
    known = sorted(paths)
    if pattern in known:
        return [pattern]
    selected: dict[str, None] = {}
    hidden: set[str] = set()
    for text in expand_numbers(escape_literal_folders(pattern, known)):
        fitting = _compile_pattern(text)
        fit = [path for path in known if fitting.fits(path) is not None]
        # A hidden file is chosen only by a pattern that has a hidden step too.
        skipped = set() if any(map(is_hidden, text.split("/"))) else set(filter(is_hidden, fit))
        if not set(fit) - skipped:
            raise Unavailable(f"no file {base / text if base else text}")
        selected |= {path: None for path in fit if path not in skipped}
        hidden |= skipped
    if hidden:
        log_message(describe_hidden(pattern, list(hidden)))
    return list(selected)


def choose_paths(paths: Sequence[str], patterns: Iterable[str], absent: list[str] | None = None) -> set[str]:
    """Select the files of a folder, an archive or a data set that match any of the patterns: by name for a pattern
    without `/`, else by path, or by a folder that contains the file. Patterns without a match are added to `absent`,
    with numbers expanded."""
    chosen: set[str] = set()
    for pattern in patterns:
        rooted, plain = "/" in pattern.rstrip("/"), pattern.strip("/")
        inside = f"/{plain}/"
        if literal := {path for path in paths if (f"/{path}/".startswith(inside) if rooted else inside in f"/{path}/")}:
            chosen |= literal
            continue
        text = escape_literal_folders(plain, paths) if rooted else f"**/{plain}"
        for variant in [text] if absent is None else expand_numbers(text):
            exact, folder = _compile_pattern(variant), _compile_pattern(f"{variant}/**")
            fit = {path for path in paths if exact.fits(path) is not None or folder.fits(path) is not None}
            if absent is not None and not fit:
                absent.append(variant if rooted else variant.removeprefix("**/"))
            chosen |= fit
    return chosen


def escape_literal_folders(pattern: str, paths: Iterable[str]) -> str:
    """Escape the leading steps of a pattern for which folders of exactly that name exist."""
    steps, head = pattern.split("/"), ""
    for index, step in enumerate(steps[:-1]):
        if has_parts(step) or (is_pattern(step) and not any(path.startswith(f"{head}{step}/") for path in paths)):
            break
        head += f"{step}/"
        if is_pattern(step):
            steps[index] = re.sub(r"[*?{}[]", r"[\g<0>]", step)
    return "/".join(steps)


def _expand_range(text: str, first: str, last: str) -> list[str]:
    if int(last) < int(first):
        raise BadDefinition(f"{text}: {{{first}..{last}}} is empty: write the lower number first")
    if int(last) - int(first) >= _MOST_NUMBERS:
        raise BadDefinition(f"{text}: {{{first}..{last}}} gives more than {_MOST_NUMBERS:,} files")
    width = max(len(first), len(last)) if any(len(end) > 1 and end.startswith("0") for end in (first, last)) else 0
    return [f"{number:0{width}d}" for number in range(int(first), int(last) + 1)]


def _make_wildcard_regex(token: re.Match[str]) -> str:
    if token["numbers"]:
        return f"(?:{'|'.join(_expand_range(token.string, token['first'], token['last']))})"
    if token["deep"]:
        return "(?:[^/]+/)*" if token["below"] else ".+"
    if token["star"]:
        if len(token["star"]) > 1:
            raise BadDefinition(f"invalid pattern {token.string!r}: ** stands for whole folders, as in **/*.csv")
        return "[^/]*?"
    if token["one"]:
        return "[^/]"
    some = re.sub(r"[^\w-]", lambda letter: re.escape(letter[0]), token["some"])
    return f"(?!/)[{'^' * bool(token['not'])}{some}]" if some else re.escape(token[0])


def _escape_text(text: str, piece: str, named: bool) -> str:
    if named and ("{" in piece or "}" in piece):
        raise BadDefinition(
            f"invalid pattern {text!r}: a part is {{name}} or {{name:REGEX}}, with a name of lower-case letters"
        )
    return re.escape(piece)


@lru_cache(maxsize=1024)
def _compile_pattern(text: str) -> PathPattern:
    return PathPattern(text, named=False)


def _split_existing(steps: Sequence[str], beside: Path) -> tuple[Path, list[str]]:
    """Follow the leading steps while such a path exists. Returns the path and the remaining steps."""
    base = beside
    for index, step in enumerate(steps):
        if not (base / step).exists():
            return base, list(steps[index:])
        base /= step
    return base, []


def _walk_files(folder: Path, depth: int | None) -> Iterator[str]:
    """Yield the paths of the files below a folder, down to a depth; without one, links to folders are not followed."""
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise Unavailable(f"{folder} cannot be read: {error.strerror or error}") from error
    for entry in entries:
        if entry.is_file():
            yield entry.name
        elif depth != 1 and entry.is_dir(follow_symlinks=depth is not None):
            below = _walk_files(folder / entry.name, depth and depth - 1)
            yield from (f"{entry.name}/{path}" for path in below)


def is_hidden(path: str) -> bool:
    """Whether a file, by its path in a folder or archive, is hidden or in a hidden folder: `.ipynb_checkpoints`,
    `._000.png`, `__MACOSX`, `Thumbs.db`."""
    return any(step.startswith(".") or step.lower() in _SYSTEMS for step in path.split("/"))


def describe_hidden(where: str, paths: Sequence[str]) -> str:
    """Return a line with the number of ignored hidden files, and an example."""
    first = min(paths)
    count = f"1 hidden file is ignored: {first}" if len(paths) == 1 else None
    return f"{where}: {count or f'{len(paths):,} hidden files are ignored, such as {first}'}"
