"""The git tree hash of a folder, which identifies thousands of files by one number."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from .archive_files import ArchiveFiles


def hash_blob(content: bytes) -> str:
    """Return the git blob hash of a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def hash_tree(blobs: Iterable[tuple[str, str, bool]]) -> str:
    """Return the git tree hash of these files, each given as path, blob hash (see `hash_blob`), and whether it is
    executable. Equal to `git rev-parse COMMIT:FOLDER`."""
    root = _Folder()
    for path, digest, executable in blobs:
        *folders, name = path.split("/")
        node = root
        for folder in folders:
            node = node.folders.setdefault(folder, _Folder())
        mode = b"100755 " if executable else b"100644 "
        node.files[name] = mode + name.encode() + b"\0" + bytes.fromhex(digest)
    return root.hash().hex()


@dataclass
class _Folder:
    """A folder's entries in git's format."""

    folders: dict[str, _Folder] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)

    def hash(self) -> bytes:
        # git sorts a folder as if its name ended with a slash.
        lines = [(name.encode(), line) for name, line in self.files.items()]
        for name, below in self.folders.items():
            lines.append((f"{name}/".encode(), b"40000 " + name.encode() + b"\0" + below.hash()))
        content = b"".join(line for _, line in sorted(lines))
        return hashlib.sha1(b"tree %d\0" % len(content) + content, usedforsecurity=False).digest()


def list_tree_hashes(files: ArchiveFiles) -> tuple[list[str], int, int]:
    """Return the possible git hashes of a folder, and its number of files and of bytes. Some file systems and archives
    lose the executable bit, so the hashes are for the modes found, for none executable, and for all executable."""
    blobs, total = {}, 0
    for name, content in files.walk():
        blobs[name] = hash_blob(content)
        total += len(content)
    modes = ([files.executable(name) for name in blobs], [False] * len(blobs), [True] * len(blobs))
    hashes = [hash_tree(zip(blobs, blobs.values(), mode, strict=True)) for mode in modes]
    return list(dict.fromkeys(hashes)), len(blobs), total
