"""Patterns of paths: one notation for files of this machine, of archives, of the web and of the Hub.

`*` is any part of one file's or folder's name, `?` one character of it, `[abc]`, `[a-f]` and `[!abc]` one of some;
`**` is any number of folders. `{000..011}` are numbers, written with as many digits, each of which must be there. What
is there by exactly the name, or lies in folders that are, is that file, whatever characters the name has.

Where files are chosen in a folder, an archive or a data set (`ignore`, `accept`, `members`, `each`), a pattern without
`/` is one of names, at any depth, and one that fits a folder stands for all that is in it.

In patterns with named parts, `{domain}/{category}/{file}`, a part is a piece of one name, as short as what follows it
allows; the last part of a pattern may hold any rest, folders too, where it is called `file`. `{name:REGEX}` says what
a part looks like.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from ...core.errors import BadDefinition, Unavailable
from ...core.progress import log_message
from .hidden import describe_hidden, is_hidden

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
    """What a path must look like, and the parts that it names. Without `named`, braces with a name in them are text."""

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
            raise BadDefinition(f"the pattern {text!r} is none: {error}") from error

    def _named(self, token: re.Match[str], last: bool) -> str:
        name = token["name"]
        if name in self.parts:
            raise BadDefinition(f"the pattern {self.text!r} names {{{name}}} twice")
        self.parts.append(name)
        return f"(?P<{name}>{token['form'] or ('.+' if name == REST and last else '[^/]+?')})"

    def fits(self, path: str) -> dict[str, str] | None:
        """The named parts of a path; None where it does not fit."""
        match = self._regex.fullmatch(path)
        return match.groupdict() if match else None

    def filled(self, values: Mapping[str, str]) -> str:
        """The path that has these parts. Each part of the pattern needs a value."""
        if is_pattern(_PART.sub("", self.text)):
            raise BadDefinition(f"the pattern {self.text!r} has a part without a name, which no row can fill")
        return _PART.sub(lambda part: values[part["name"]], self.text)


def is_pattern(text: str) -> bool:
    """Whether a text without named parts is more than the name of one file."""
    return any(not token["name"] for token in _TOKEN.finditer(text))


def has_parts(text: str) -> bool:
    """Whether a text has named parts."""
    return bool(_PART.search(text))


def expand_numbers(text: str) -> list[str]:
    """The texts that `shard-{000..011}.tar` stands for, in order; itself where it has no numbers."""
    texts = [text]
    while (match := re.search(_NUMBERS, texts[0])) is not None:
        numbers = _expand_range(text, match["first"], match["last"])
        texts = [template.replace(match["numbers"], number, 1) for template in texts for number in numbers]
        if len(texts) > _MOST_NUMBERS:
            raise BadDefinition(f"{text}: over {_MOST_NUMBERS:,} files")
    return texts


def find_files(pattern: str, beside: Path) -> list[Path]:
    """The files of this machine that a path or pattern names, `beside` a folder where it is relative: numbers in their
    order, other files by name. What a wildcard fits and is hidden is left out, and announced. `Unavailable` where
    there is none."""
    if any(letter < " " for letter in pattern):
        raise BadDefinition(f"{pattern!r} is no path: it has control characters")
    base, steps = _split_existing(Path(pattern).parts, beside)
    if not steps:
        if base.is_dir():
            raise BadDefinition(f"{pattern!r} is no pattern of files but a folder: name its files, as in folder/*.csv")
        return [base]
    _compile_pattern("/".join(steps))  # what is no pattern is refused whatever there is
    selected: dict[Path, None] = {}
    hidden: set[Path] = set()
    for text in expand_numbers("/".join(steps)):
        paths = dict.fromkeys(_walk_files(base, text.split("/")))
        hidden |= {path for path in paths if _is_skipped(path.relative_to(base).as_posix(), text)}
        if not paths.keys() - hidden:
            raise Unavailable(f"no file {base / text}")
        selected |= {path: None for path in paths if path not in hidden}
    if hidden:
        log_message(describe_hidden(pattern, [path.relative_to(base).as_posix() for path in hidden]))
    return list(selected)


def select_paths(paths: Iterable[str], pattern: str) -> list[str]:
    """Those of a list of paths that a path or pattern names, as `find_files` has it. `Unavailable` where none is."""
    known = sorted(paths)
    if pattern in known:
        return [pattern]
    selected: dict[str, None] = {}
    for text in expand_numbers(escape_literal_folders(pattern, known)):
        fitting = _compile_pattern(text)
        fit = [path for path in known if fitting.fits(path) is not None and not _is_skipped(path, text)]
        if not fit:
            raise Unavailable(f"no file {text}")
        selected |= dict.fromkeys(fit)
    return list(selected)


def choose_paths(paths: Sequence[str], patterns: Iterable[str], absent: list[str] | None = None) -> set[str]:
    """The files of a folder, an archive or a data set that any of the patterns fits: by its name where a pattern has
    no `/`, by its path where it has, or by a folder that it is in. Patterns that fit nothing are added to `absent`,
    those with numbers one for each number."""
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
    """A pattern whose first steps fit nothing but themselves, as long as there are folders of exactly their names."""
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
        raise BadDefinition(f"{text}: {{{first}..{last}}} has no numbers: write the lower one first")
    if int(last) - int(first) >= _MOST_NUMBERS:
        raise BadDefinition(f"{text}: {{{first}..{last}}} are over {_MOST_NUMBERS:,} files")
    width = max(len(first), len(last)) if any(len(end) > 1 and end.startswith("0") for end in (first, last)) else 0
    return [f"{number:0{width}d}" for number in range(int(first), int(last) + 1)]


def _make_wildcard_regex(token: re.Match[str]) -> str:
    if token["numbers"]:
        return f"(?:{'|'.join(_expand_range(token.string, token['first'], token['last']))})"
    if token["deep"]:
        return "(?:[^/]+/)*" if token["below"] else ".+"
    if token["star"]:
        if len(token["star"]) > 1:
            raise BadDefinition(f"{token.string!r} is no pattern of files: ** is any number of folders, as in **/*.csv")
        return "[^/]*?"
    if token["one"]:
        return "[^/]"
    some = re.sub(r"[^\w-]", lambda letter: re.escape(letter[0]), token["some"])
    return f"(?!/)[{'^' * bool(token['not'])}{some}]" if some else re.escape(token[0])


def _escape_text(text: str, piece: str, named: bool) -> str:
    if named and ("{" in piece or "}" in piece):
        raise BadDefinition(
            f"the pattern {text!r} is none: a part is {{name}} or {{name:REGEX}}, its name of lower-case letters"
        )
    return re.escape(piece)


@lru_cache(maxsize=1024)
def _compile_pattern(text: str) -> PathPattern:
    return PathPattern(text, named=False)


def _is_skipped(path: str, pattern: str) -> bool:
    """Whether a path is hidden where the pattern does not say so."""
    return is_hidden(path) and not any(is_hidden(step) for step in pattern.split("/"))


def _split_existing(steps: Sequence[str], beside: Path) -> tuple[Path, list[str]]:
    """The path that the first steps lead to as long as there is one, and the steps that are left."""
    base = beside
    for index, step in enumerate(steps):
        if not (base / step).exists():
            return base, list(steps[index:])
        base /= step
    return base, []


def _walk_files(folder: Path, steps: Sequence[str]) -> Iterator[Path]:
    """The files below a folder that fit the steps of a pattern, one for each name on the way."""
    step, *rest = steps
    if step != "**" and not is_pattern(step):
        entries = [folder / step]
    else:
        try:
            entries = sorted(Path(entry.path) for entry in os.scandir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise Unavailable(f"{folder} cannot be read: {error.strerror or error}") from error
    if step == "**":
        if rest:
            yield from _walk_files(folder, rest)
        for path in entries:
            if path.is_dir() and not path.is_symlink():
                yield from _walk_files(path, steps)
            elif not rest and path.is_file():
                yield path
        return
    for path in entries:
        if path.name == step or _compile_pattern(step).fits(path.name) is not None:
            if not rest and path.is_file():
                yield path
            elif rest and path.is_dir():
                yield from _walk_files(path, rest)
