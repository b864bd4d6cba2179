"""The zip of a submission, read strictly: one layout is taken, the one that `farshift pack` writes.

The central directory lies at the very end; the entries tile all that lies before it, in its order; each local header
says what the directory says. So no byte of the file is hidden, shared or read in two ways. (What goes wrong where
readers are lenient: Fifield 2019, A better zip bomb; CVE-2024-0450 of CPython.)

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
"""Flags that change nothing here: names in UTF-8, how hard the deflater tried."""
_STORED, _DEFLATED = 0, 8
_ZIP64 = 0xFFFFFFFF
_DOS_FOLDER = 0x10


@dataclass(frozen=True)
class Member:
    """An entry of the zip: where its bytes lie, and what they must unpack to."""

    name: str
    method: int
    crc: int
    packed: int
    size: int
    start: int


class UnreadableZip(Exception):
    """The zip cannot be read any further: the problem's name, and what is wrong."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(what)
        self.name = name


class Archive:
    """The entries of a submission, by name. What is wrong with the zip is added to `problems`; where that leaves
    nothing to read there are no entries."""

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
        """Write an entry's bytes to `to`, a piece at a time; sha256 of them, or "" where they are not what the zip
        says they are."""
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
                raise UnreadableZip("zip-nested", "is an archive itself")
            size += len(piece)
            if size > member.size:
                raise UnreadableZip("zip-damaged", f"unpacks to more than the {member.size} bytes that it claims")
            state.update(piece)
            crc = zlib.crc32(piece, crc)
            to.write(piece)
        if size != member.size or crc != member.crc:
            raise UnreadableZip("zip-damaged", "its bytes are not those that its checksum was taken of")
        return state.hexdigest()

    def _pieces(self, member: Member) -> Iterator[bytes]:
        """The unpacked bytes in pieces of at most a MiB."""
        self._file.seek(member.start)
        left = member.packed
        inflate = zlib.decompressobj(-zlib.MAX_WBITS) if member.method == _DEFLATED else None
        while left:
            chunk = self._file.read(min(left, MIB))
            if not chunk:
                raise UnreadableZip("file-changed", "was cut off while it was read")
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
            raise UnreadableZip("zip-damaged", "its compressed data have no end")

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
                raise UnreadableZip("zip-overlap", f"entry {_decode_name(raw)!r} reaches into the directory")
            member = Member(_decode_name(raw), method, crc, packed, size, position - packed)
            if problem := _find_problem(member, attributes, seen):
                problems.add(problem[0], member.name, problem[1])
            else:
                self.members[member.name] = member
        if at != len(directory):
            raise UnreadableZip(
                "zip-extra-bytes", f"its directory has {len(directory) - at} bytes more than its entries need"
            )
        if position != start:
            raise UnreadableZip(
                "zip-extra-bytes", f"{start - position} bytes lie between the last entry and the directory"
            )
        if sum(member.size for member in self.members.values()) > SUBMISSION_BYTES:
            raise UnreadableZip("zip-too-large", f"unpacks to over {SUBMISSION_BYTES} bytes")

    def _end(self) -> tuple[int, bytes, int]:
        """How many entries the zip has, its central directory, and where that begins."""
        if self.size < _END.size:
            raise UnreadableZip("zip-unreadable", f"not a readable zip: it has {self.size} bytes")
        self._file.seek(self.size - _END.size)
        mark, disk, first, disk_entries, count, length, start, comment = _END.unpack(self._file.read(_END.size))
        if mark != _END_MARK:
            raise UnreadableZip(
                "zip-unreadable", "not a readable zip: it does not end with the end of a zip's directory"
            )
        if comment or disk or first or disk_entries != count:
            raise UnreadableZip("zip-unreadable", "not a readable zip: its end speaks of a comment or of several disks")
        if count == 0xFFFF or _ZIP64 in (length, start):
            raise UnreadableZip("zip-zip64", "is in the zip64 format, which no submission needs")
        if count > 2 * RUNS + 1:
            raise UnreadableZip("zip-too-many", f"has {count} entries; {RUNS} runs and their card are {2 * RUNS + 1}")
        if start + length != self.size - _END.size:
            raise UnreadableZip("zip-extra-bytes", "its directory does not lie where its end says")
        self._file.seek(start)
        return count, self._file.read(length), start

    def _local(self, raw: bytes, offset: int, stated: tuple[int, ...]) -> int:
        """Where an entry's data begin; its local header must say what the directory says."""
        self._file.seek(offset)
        head = self._file.read(_LOCAL.size + len(raw))
        if len(head) < _LOCAL.size + len(raw):
            raise UnreadableZip("zip-overlap", f"entry {_decode_name(raw)!r} begins past the end of the file")
        mark, _, flags, method, _, _, crc, packed, size, name_length, extra = _LOCAL.unpack_from(head)
        same = (flags, method, crc, packed, size) == stated and name_length == len(raw) and head[_LOCAL.size :] == raw
        if mark != _LOCAL_MARK or not same:
            raise UnreadableZip("zip-headers-differ", f"entry {_decode_name(raw)!r} is another one in its own header")
        if extra:
            raise UnreadableZip("zip-extra-field", f"entry {_decode_name(raw)!r} has an extra field in its own header")
        return offset + _LOCAL.size + len(raw)


def _decode_name(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _check_entry(raw: bytes, flags: int, method: int, sizes: tuple[int, int, int], other: int) -> None:
    """Refuse what no submission needs and readers disagree about."""
    name, (packed, size, _) = format_untrusted(_decode_name(raw)), sizes
    if flags & _ENCRYPTED:
        raise UnreadableZip("zip-encrypted", f"entry {name!r} is encrypted")
    if _ZIP64 in sizes:
        raise UnreadableZip("zip-zip64", f"entry {name!r} is in the zip64 format, which no submission needs")
    if flags & ~_HARMLESS or method not in (_STORED, _DEFLATED):
        raise UnreadableZip(
            "zip-method", f"entry {name!r} is packed by method {method}, flags {flags:#x}; 0 and 8 are taken"
        )
    if other:
        raise UnreadableZip("zip-extra-field", f"entry {name!r} has an extra field, a comment or another disk")
    if method == _STORED and packed != size:
        raise UnreadableZip("zip-headers-differ", f"entry {name!r} is stored, {packed} bytes, and claims to be {size}")


def _find_problem(member: Member, attributes: int, seen: dict[str, str]) -> tuple[str, str] | None:
    """Why an entry has no place in a submission: the problem's name, and what is wrong."""
    name = member.name
    folded = unicodedata.normalize("NFKC", name).casefold()
    if folded in seen:
        return "zip-duplicate", f"is there twice (also as {format_untrusted(seen[folded])!r})"
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
        return "zip-traversal", "leads out of its folder, or is written as no path is"
    if folded.endswith(_ARCHIVES):
        return "zip-nested", "is an archive"
    if not _NAMES.fullmatch(name):
        return "zip-unexpected", "unexpected entry"
    most = PREDICTIONS_BYTES if name.endswith(".parquet") else CARD_BYTES
    if member.size > most:
        return "zip-too-large", f"has {member.size} bytes; at most {most} are taken"
    if member.size > MIB and member.size > RATIO * member.packed:
        return "zip-ratio", f"{member.packed} bytes that claim to unpack to {member.size}: more than {RATIO} times"
    return None
