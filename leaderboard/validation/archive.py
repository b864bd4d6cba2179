"""The zip of a submission, read strictly: only the layout that `farshift pack` writes is accepted.

The central directory is at the very end; the entries fill all of the file before it, in the directory's order; each
local header agrees with the directory. So no byte of the file is hidden, shared or read in two ways. (For attacks on
lenient readers see Fifield 2019, A better zip bomb; CVE-2024-0450 of CPython.)

Layout: PKWARE, APPNOTE 6.3.10, sections 4.3.7, 4.3.12 and 4.3.16.
"""

from __future__ import annotations

import re
import stat
import struct
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import BinaryIO

from .limits import CARD_BYTES, MIB, PREDICTIONS_BYTES, RATIO, RUNS, SUBMISSION_BYTES
from .problem import Problems, format_untrusted

CARD = "submission.toml"
_NAMES = re.compile(r"(submission\.toml|runs/(0|[1-9]\d{0,2})\.toml|predictions/(0|[1-9]\d{0,2})\.parquet)", re.ASCII)
_ARCHIVES = (".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".jar", ".whl")
_NESTED = (b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"\x28\xb5\x2f\xfd")
_END = struct.Struct("<4s4H2LH")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL_MARK, _LOCAL_MARK, _END_MARK = b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_HARMLESS = 0x800 | 0x6
"""Flags without effect here: names in UTF-8, compression level."""
_STORED, _DEFLATED = 0, 8
_ZIP64 = 0xFFFFFFFF
_DOS_FOLDER = 0x10


@dataclass(frozen=True)
class Member:
    """An entry of the zip: the position of its bytes, and its unpacked size and checksum."""

    name: str
    method: int
    crc: int
    packed: int
    size: int
    start: int


class UnreadableZip(Exception):
    """The rest of the zip cannot be read: the problem's name and description."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(what)
        self.name = name


class Archive:
    """The entries of a submission, by name. Problems of the zip are added to `problems`; if they leave nothing to read,
    there are no entries."""

    def __init__(self, file: BinaryIO, whose: str, problems: Problems) -> None:
        self._file, self.size = file, file.seek(0, 2)
        self.members: dict[str, Member] = {}
        try:
            self._open(problems)
        except UnreadableZip as error:
            self.members = {}
            problems.add(error.name, whose, str(error))

    def digest(self) -> str:
        """sha256 of the whole file."""
        self._file.seek(0)
        state = sha256()
        while chunk := self._file.read(MIB):
            state.update(chunk)
        return state.hexdigest()

    def unpack(self, name: str, to: BinaryIO, problems: Problems) -> str:
        """Write an entry's bytes to `to` in pieces. Returns their sha256, or "" if they do not match the zip's
        directory."""
        member = self.members[name]
        try:
            return self._unpack(member, to)
        except UnreadableZip as error:
            problems.add(error.name, name, str(error))
            return ""

    def _unpack(self, member: Member, to: BinaryIO) -> str:
        state, crc, size = sha256(), 0, 0
        for piece in self._pieces(member):
            if not size and piece.startswith(_NESTED):
                raise UnreadableZip("zip-nested", "is an archive")
            size += len(piece)
            if size > member.size:
                raise UnreadableZip("zip-damaged", f"unpacks to more than the stated {member.size} bytes")
            state.update(piece)
            crc = zlib.crc32(piece, crc)
            to.write(piece)
        if size != member.size or crc != member.crc:
            raise UnreadableZip("zip-damaged", "its checksum does not match")
        return state.hexdigest()

    def _pieces(self, member: Member) -> Iterator[bytes]:
        """Yield the unpacked bytes in pieces of at most a MiB."""
        self._file.seek(member.start)
        left = member.packed
        inflate = zlib.decompressobj(-zlib.MAX_WBITS) if member.method == _DEFLATED else None
        while left:
            chunk = self._file.read(min(left, MIB))
            if not chunk:
                raise UnreadableZip("file-changed", "was truncated while it was read")
            left -= len(chunk)
            if inflate is None:
                yield chunk
                continue
            try:
                while chunk:
                    piece = inflate.decompress(chunk, MIB)
                    chunk = inflate.unconsumed_tail
                    if piece:
                        yield piece
            except zlib.error as error:
                raise UnreadableZip("zip-damaged", f"cannot be unpacked: {error}") from error
            if inflate.unused_data:
                raise UnreadableZip("zip-extra-bytes", "has bytes after the end of its compressed data")
        if inflate is not None and not inflate.eof:
            raise UnreadableZip("zip-damaged", "its compressed data are truncated")

    def _open(self, problems: Problems) -> None:
        count, directory, start = self._end()
        position, at = 0, 0
        seen: dict[str, str] = {}
        for number in range(count):
            if at + _CENTRAL.size > len(directory):
                raise UnreadableZip("zip-unreadable", f"its directory ends before entry {number + 1} of {count}")
            (mark, _, _, flags, method, _, _, crc, packed, size, *lengths, disk, _, attributes, offset) = (
                _CENTRAL.unpack_from(directory, at)
            )
            name_length, extra, comment = lengths
            raw = directory[at + _CENTRAL.size : at + _CENTRAL.size + name_length]
            at += _CENTRAL.size + name_length + extra + comment
            if mark != _CENTRAL_MARK or len(raw) < name_length or at > len(directory):
                raise UnreadableZip("zip-unreadable", f"its directory is damaged at entry {number + 1} of {count}")
            _check_entry(raw, flags, method, (packed, size, offset), extra or comment or disk)
            if offset != position:
                raise UnreadableZip(
                    "zip-overlap", f"entry {_decode_name(raw)!r} begins at byte {offset}, and not at {position}"
                )
            position = self._local(raw, offset, (flags, method, crc, packed, size)) + packed
            if position > start:
                raise UnreadableZip("zip-overlap", f"entry {_decode_name(raw)!r} overlaps the directory")
            member = Member(_decode_name(raw), method, crc, packed, size, position - packed)
            if problem := _find_problem(member, attributes, seen):
                problems.add(problem[0], member.name, problem[1])
            else:
                self.members[member.name] = member
        if at != len(directory):
            raise UnreadableZip("zip-extra-bytes", f"its directory has {len(directory) - at} extra bytes")
        if position != start:
            raise UnreadableZip(
                "zip-extra-bytes", f"{start - position} bytes are between the last entry and the directory"
            )
        if sum(member.size for member in self.members.values()) > SUBMISSION_BYTES:
            raise UnreadableZip("zip-too-large", f"unpacks to over {SUBMISSION_BYTES} bytes")

    def _end(self) -> tuple[int, bytes, int]:
        """The number of entries, the central directory, and its position."""
        if self.size < _END.size:
            raise UnreadableZip("zip-unreadable", f"not a readable zip: it has {self.size} bytes")
        self._file.seek(self.size - _END.size)
        mark, disk, first, disk_entries, count, length, start, comment = _END.unpack(self._file.read(_END.size))
        if mark != _END_MARK:
            raise UnreadableZip(
                "zip-unreadable", "not a readable zip: it does not end with a zip's end-of-directory record"
            )
        if comment or disk or first or disk_entries != count:
            raise UnreadableZip("zip-unreadable", "not a readable zip: it has a comment or several disks")
        if count == 0xFFFF or _ZIP64 in (length, start):
            raise UnreadableZip("zip-zip64", "is in the zip64 format, which no submission needs")
        if count > 2 * RUNS + 1:
            raise UnreadableZip("zip-too-many", f"has {count} entries; {RUNS} runs and their card are {2 * RUNS + 1}")
        if start + length != self.size - _END.size:
            raise UnreadableZip("zip-extra-bytes", "its directory is not at the stated position")
        self._file.seek(start)
        return count, self._file.read(length), start

    def _local(self, raw: bytes, offset: int, stated: tuple[int, ...]) -> int:
        """The position of an entry's data. Its local header must agree with the directory."""
        self._file.seek(offset)
        head = self._file.read(_LOCAL.size + len(raw))
        if len(head) < _LOCAL.size + len(raw):
            raise UnreadableZip("zip-overlap", f"entry {_decode_name(raw)!r} begins past the end of the file")
        mark, _, flags, method, _, _, crc, packed, size, name_length, extra = _LOCAL.unpack_from(head)
        same = (flags, method, crc, packed, size) == stated and name_length == len(raw) and head[_LOCAL.size :] == raw
        if mark != _LOCAL_MARK or not same:
            raise UnreadableZip("zip-headers-differ", f"entry {_decode_name(raw)!r} has a different local header")
        if extra:
            raise UnreadableZip("zip-extra-field", f"entry {_decode_name(raw)!r} has a local extra field")
        return offset + _LOCAL.size + len(raw)


def _decode_name(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _check_entry(raw: bytes, flags: int, method: int, sizes: tuple[int, int, int], other: int) -> None:
    """Refuse zip features that no submission needs and that readers interpret differently."""
    name, (packed, size, _) = format_untrusted(_decode_name(raw)), sizes
    if flags & _ENCRYPTED:
        raise UnreadableZip("zip-encrypted", f"entry {name!r} is encrypted")
    if _ZIP64 in sizes:
        raise UnreadableZip("zip-zip64", f"entry {name!r} is in the zip64 format, which no submission needs")
    if flags & ~_HARMLESS or method not in (_STORED, _DEFLATED):
        raise UnreadableZip(
            "zip-method", f"entry {name!r} has method {method}, flags {flags:#x}; methods 0 and 8 are accepted"
        )
    if other:
        raise UnreadableZip("zip-extra-field", f"entry {name!r} has an extra field, a comment or a disk number")
    if method == _STORED and packed != size:
        raise UnreadableZip("zip-headers-differ", f"entry {name!r} is stored in {packed} bytes, but states {size}")


def _find_problem(member: Member, attributes: int, seen: dict[str, str]) -> tuple[str, str] | None:
    """Why an entry is not accepted in a submission: the problem's name and description; None if it is."""
    name = member.name
    folded = unicodedata.normalize("NFKC", name).casefold()
    if folded in seen:
        return "zip-duplicate", f"occurs twice (also as {format_untrusted(seen[folded])!r})"
    seen[folded] = name
    mode = attributes >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "zip-link", "is a link or another special file"
    if name.endswith("/") or stat.S_ISDIR(mode) or attributes & _DOS_FOLDER:
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
    most = PREDICTIONS_BYTES if name.endswith(".parquet") else CARD_BYTES
    if member.size > most:
        return "zip-too-large", f"has {member.size} bytes; at most {most} are accepted"
    if member.size > MIB and member.size > RATIO * member.packed:
        return "zip-ratio", f"{member.packed} bytes that unpack to {member.size}: more than {RATIO} times"
    return None
