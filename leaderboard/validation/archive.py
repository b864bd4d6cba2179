"""The zip of a submission: Python's `zipfile` within bounds on the number of entries, their sizes, compression ratios
and names. Only the layout that `farshift pack` writes is accepted; nothing is unpacked by name."""

from __future__ import annotations

import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import BinaryIO

from ...core.files import translate_os_errors
from .limits import CARD_BYTES, MIB, PREDICTIONS_BYTES, RATIO, RUNS, SUBMISSION_BYTES, FileRejected
from .problem import Problems

CARD = "submission.toml"
_NAMES = re.compile(r"(submission\.toml|runs/(0|[1-9]\d{0,2})\.toml|predictions/(0|[1-9]\d{0,2})\.parquet)", re.ASCII)
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
        for member in self._zip.infolist():
            if member.orig_filename in self.members:
                problems.add("zip-unexpected", member.orig_filename, "occurs twice")
            elif problem := _find_problem(member):
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
        while piece := self._file.read(MIB):
            state.update(piece)
        return state.hexdigest()

    @contextmanager
    def unpack(self, name: str) -> Iterator[tuple[BinaryIO, str]]:
        """An entry's bytes in a temporary file, with their sha256; never more than the zip's directory states. Raises
        `FileRejected` if there is none, or if they do not match the directory."""
        if name not in self.members:
            raise FileRejected.because("entry-missing", "is missing")
        state, size, stated = sha256(), 0, self.members[name].file_size
        advice = translate_os_errors(Path(gettempdir()), "set TMPDIR to another disk")
        with advice, TemporaryFile() as to:
            try:
                with self._zip.open(self.members[name]) as content:
                    while piece := content.read(MIB):
                        size += len(piece)
                        state.update(piece)
                        to.write(piece)
                if size != stated:
                    raise EOFError(f"it has {size} bytes, and the directory states {stated}")
            except _DAMAGED as error:
                why = f"cannot be unpacked: {error or type(error).__name__}"
                raise FileRejected.because("zip-damaged", why) from error
            yield to, state.hexdigest()


def _find_directory_problem(file: BinaryIO, size: int) -> tuple[str, str] | None:
    """Why the zip's directory is not read: none, or larger than that of any submission. `zipfile` reads all of it."""
    file.seek(max(0, size - (1 << 16) - 22))
    tail = file.read()
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or end + 22 > len(tail) or tail[max(0, end - 20) : end].startswith(b"PK\x06\x07"):
        return "zip-unreadable", f"not a readable zip: it has {size} bytes without an end-of-directory record, or zip64"
    count, length = struct.unpack_from("<HL", tail, end + 10)
    most = 2 * RUNS + 1
    if count > most or length > most * _ENTRY_BYTES:
        return "zip-too-many", f"has {count} entries; {RUNS} runs and their card are {most}"
    return None


def _find_problem(member: zipfile.ZipInfo) -> tuple[str, str] | None:
    """Why an entry is not accepted in a submission: the problem's name and description; None if it is."""
    kind, attributes = stat.S_IFMT(member.external_attr >> 16), member.external_attr
    if not _NAMES.fullmatch(member.orig_filename) or kind not in (0, stat.S_IFREG) or attributes & _DOS_FOLDER:
        return "zip-unexpected", "is not a file that a submission has"
    if member.flag_bits & _ENCRYPTED or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "zip-unexpected", "is encrypted, or compressed by another method than deflate"
    most = PREDICTIONS_BYTES if member.filename.endswith(".parquet") else CARD_BYTES
    if member.file_size > most:
        return "zip-too-large", f"has {member.file_size} bytes; at most {most} are accepted"
    if member.file_size > MIB and member.file_size > RATIO * member.compress_size:
        return "zip-too-large", f"{member.compress_size} bytes that unpack to {member.file_size}: over {RATIO} times"
    return None
