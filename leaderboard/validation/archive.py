"""The zip of a submission: Python's `zipfile` within bounds on the number of entries, their sizes, compression ratios
and names. Only the layout that `farshift pack` writes is accepted; nothing is unpacked by name."""

from __future__ import annotations

import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from hashlib import sha256
from typing import BinaryIO

from .limits import CARD_BYTES, MIB, PREDICTIONS_BYTES, RATIO, RUNS, SUBMISSION_BYTES
from .problem import Problems, format_untrusted

CARD = "submission.toml"
_NAMES = re.compile(r"(submission\.toml|runs/(0|[1-9]\d{0,2})\.toml|predictions/(0|[1-9]\d{0,2})\.parquet)", re.ASCII)
_ARCHIVES = (".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".jar", ".whl")
_NESTED = (b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"\x28\xb5\x2f\xfd")
_ENTRY_BYTES = 1000
"""More than an entry of the directory needs: 46 bytes, its name, and fields that other tools add."""
_ENCRYPTED = 0x1
_DOS_FOLDER = 0x10
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError),
    *(NotImplementedError, RuntimeError, ValueError, OverflowError),
)
"""The exceptions of `zipfile` for a damaged archive."""


class Archive:
    """The entries of a submission, by name. Problems of the zip are added to `problems`; if they leave nothing to read,
    there are no entries."""

    def __init__(self, file: BinaryIO, whose: str, problems: Problems) -> None:
        self._file, self.size = file, file.seek(0, 2)
        self.members: dict[str, zipfile.ZipInfo] = {}
        if problem := _find_directory_problem(file, self.size):
            problems.add(problem[0], whose, problem[1])
            return
        try:
            self._zip = zipfile.ZipFile(file)
        except _DAMAGED as error:
            problems.add("zip-unreadable", whose, f"not a readable zip: {error}")
            return
        seen: dict[str, str] = {}
        for member in self._zip.infolist():
            if problem := _find_problem(member, seen):
                problems.add(problem[0], member.orig_filename, problem[1])
            else:
                self.members[member.orig_filename] = member
        if sum(member.file_size for member in self.members.values()) > SUBMISSION_BYTES:
            problems.add("zip-too-large", whose, f"unpacks to over {SUBMISSION_BYTES} bytes")
            self.members = {}

    def digest(self) -> str:
        """sha256 of the whole file."""
        self._file.seek(0)
        state = sha256()
        while chunk := self._file.read(MIB):
            state.update(chunk)
        return state.hexdigest()

    def unpack(self, name: str, to: BinaryIO, problems: Problems) -> str:
        """Write an entry's bytes to `to` in pieces, never more than the zip's directory states. Returns their sha256,
        or "" if they do not match the directory."""
        state, size = sha256(), 0
        try:
            with self._zip.open(self.members[name]) as content:
                while piece := content.read(MIB):
                    if not size and piece.startswith(_NESTED):
                        problems.add("zip-nested", name, "is an archive")
                        return ""
                    size += len(piece)
                    state.update(piece)
                    to.write(piece)
        except _DAMAGED as error:
            problems.add("zip-damaged", name, f"cannot be unpacked: {error or type(error).__name__}")
            return ""
        if size != self.members[name].file_size:
            problems.add("zip-damaged", name, f"has {size} bytes, but states {self.members[name].file_size}")
            return ""
        return state.hexdigest()


def _find_directory_problem(file: BinaryIO, size: int) -> tuple[str, str] | None:
    """Why the zip's directory is not read: none, or larger than that of any submission. `zipfile` reads all of it."""
    file.seek(max(0, size - (1 << 16) - 22))
    tail = file.read()
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or end + 22 > len(tail):
        return "zip-unreadable", f"not a readable zip: it has {size} bytes without an end-of-directory record"
    count, length = struct.unpack_from("<HL", tail, end + 10)
    if tail[max(0, end - 20) : end].startswith(b"PK\x06\x07"):
        return "zip-zip64", "is in the zip64 format, which no submission needs"
    most = 2 * RUNS + 1
    if count > most or length > most * _ENTRY_BYTES:
        return "zip-too-many", f"has {count} entries; {RUNS} runs and their card are {most}"
    return None


def _find_problem(member: zipfile.ZipInfo, seen: dict[str, str]) -> tuple[str, str] | None:
    """Why an entry is not accepted in a submission: the problem's name and description; None if it is."""
    name = member.orig_filename
    folded = unicodedata.normalize("NFKC", name).casefold()
    if folded in seen:
        return "zip-duplicate", f"occurs twice (also as {format_untrusted(seen[folded])!r})"
    seen[folded] = name
    mode = member.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "zip-link", "is a link or another special file"
    if name.endswith("/") or stat.S_ISDIR(mode) or member.external_attr & _DOS_FOLDER:
        return "zip-folder", "is a folder"
    parts = re.split(r"[/\\]", name)
    if parts[0] == "" or re.match(r"[A-Za-z]:", name):
        return "zip-absolute", "is an absolute path"
    if ".." in parts or "." in parts or "\\" in name or "\0" in name:
        return "zip-traversal", "leads out of its folder, or is not a normalised path"
    if folded.endswith(_ARCHIVES):
        return "zip-nested", "is an archive"
    if not _NAMES.fullmatch(name):
        return "zip-unexpected", "unexpected entry"
    if member.flag_bits & _ENCRYPTED:
        return "zip-encrypted", "is encrypted"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "zip-method", f"has compression method {member.compress_type}; methods 0 and 8 are accepted"
    most = PREDICTIONS_BYTES if name.endswith(".parquet") else CARD_BYTES
    if member.file_size > most:
        return "zip-too-large", f"has {member.file_size} bytes; at most {most} are accepted"
    if member.file_size > MIB and member.file_size > RATIO * member.compress_size:
        return "zip-ratio", f"{member.compress_size} bytes that unpack to {member.file_size}: over {RATIO} times"
    return None
