"""Zips written by hand, header by header, so that each field can lie."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

LOCAL, CENTRAL, END = struct.Struct("<4s5H3L2H"), struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s4H2LH")


@dataclass
class Entry:
    """An entry of a zip. `local` and `central` hold what a header says other than the truth, by field: name, flags,
    method, crc, packed, size, extra, offset, attributes, comment, mark, disk."""

    name: str
    content: bytes
    method: int = 0
    local: dict = field(default_factory=dict)
    central: dict = field(default_factory=dict)

    def packed(self) -> bytes:
        if self.method != 8:
            return self.content
        deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        return deflate.compress(self.content) + deflate.flush()

    def said(self, lies: dict) -> dict:
        truth = {
            "name": self.name.encode("utf-8", "surrogateescape"),
            "flags": 0x800 if not self.name.isascii() else 0,
            "method": self.method,
            "crc": zlib.crc32(self.content),
            "packed": len(self.packed()),
            "size": len(self.content),
            "extra": b"",
        }
        return truth | lies


def written(entries: list[Entry], end: dict | None = None, before: bytes = b"", after: bytes = b"") -> bytes:
    """The bytes of a zip. `end` holds lies of its last record: count, here, length, start, comment, disk, mark."""
    body, directory = bytearray(before), bytearray()
    for entry in entries:
        output, offset = entry.said(entry.local), len(body)
        body += LOCAL.pack(
            output.get("mark", b"PK\x03\x04"), 20, output["flags"], output["method"], 0, 0x21, output["crc"], output["packed"],
            output["size"], len(output["name"]), len(output["extra"]),
        )  # fmt: skip
        body += output["name"] + output["extra"] + entry.packed() + output.get("descriptor", b"")
        output = entry.said(entry.central)
        comment = output.get("comment", b"")
        directory += CENTRAL.pack(
            output.get("mark", b"PK\x01\x02"), 20 | 3 << 8, 20, output["flags"], output["method"], 0, 0x21, output["crc"],
            output["packed"], output["size"], len(output["name"]), len(output["extra"]), len(comment), output.get("disk", 0), 0,
            output.get("attributes", 0o100644 << 16), output.get("offset", offset),
        )  # fmt: skip
        directory += output["name"] + output["extra"] + comment
    lies = {"count": len(entries), "length": len(directory), "start": len(body), "comment": b"", "disk": 0} | (
        end or {}
    )
    last = END.pack(
        lies.get("mark", b"PK\x05\x06"), lies["disk"], lies["disk"], lies.get("here", lies["count"]), lies["count"],
        lies["length"], lies["start"], len(lies["comment"]),
    )  # fmt: skip
    return bytes(body + directory + last + lies["comment"] + after)
