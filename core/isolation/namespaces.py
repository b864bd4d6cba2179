"""A process without network that sees few files: Linux namespaces, entered before anything else is done.

The process gets namespaces of its own for users, mounts, processes, network and System V objects; its root is a new
tmpfs, into which only the named folders are bound; then it drops every capability for good. Nothing else of the
machine can be reached by a path, and no address at all. This is no defence against flaws of the kernel.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from ..errors import FarshiftError

_NEW = {"mounts": 0x20000, "users": 0x10000000, "processes": 0x20000000, "network": 0x40000000, "ipc": 0x08000000}
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 2, 4, 32, 4096, 1 << 14, 1 << 18
_DETACH = 2
_PARENT_DEATH, _NO_NEW_PRIVILEGES, _DROP_BOUNDING = 1, 38, 24
_CAPABILITIES = 0x20080522  # the third version of the header
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_SET_ATTRIBUTES = 442
_AT = -100  # AT_FDCWD
_AT_RECURSIVE = 0x8000

_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/nix", "/sys")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

Kind = Literal["read", "write", "hide"]

_entered = False


def is_isolated() -> bool:
    """Whether this process has entered an isolation."""
    return _entered


@dataclass(frozen=True)
class View:
    """What an isolated process sees besides the system's programs: folders and files to read, those to write, and those
    that are empty although they lie in others. room: an empty folder, where its root is put together."""

    room: str
    read: Sequence[str]
    write: Sequence[str]
    hide: Sequence[str]


def enter(view: View) -> None:
    """Isolate this process, which must have a single thread: what follows runs in a child, with whose exit code this
    process ends. `FarshiftError` says what the system refuses."""
    global _entered
    try:
        _unshare()
        _end_with_parent()  # set now: other capabilities take it back
    except (OSError, AttributeError, KeyError) as error:
        raise FarshiftError(
            f"this system does not let a process be isolated ({error}): it takes Linux (x86_64 or aarch64) with user "
            "namespaces; in a container they have to be allowed (seccomp, AppArmor)"
        ) from None
    child = os.fork()
    if child:
        _end_as(child)
    try:
        _end_with_parent()
        _build_root(view)
        _drop_capabilities()
    except OSError as error:
        raise FarshiftError(f"this system does not let a process be isolated: {error}") from None
    _entered = True


def _end_with_parent() -> None:
    """Also where the parent is killed."""
    _call("prctl", _PARENT_DEATH, signal.SIGKILL, 0, 0, 0)


def _end_as(child: int) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the child itself
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _call(name: str, *arguments: object) -> None:
    """A function of the C library that gives 0; `OSError` names it otherwise."""
    library = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in arguments]
    if getattr(library, name)(*given) != 0:
        code = ctypes.get_errno()
        said = next((str(one) for one in arguments if isinstance(one, bytes)), "")
        raise OSError(code, f"{name}{said and ' '}{said}: {os.strerror(code)}")


def _unshare() -> None:
    if sys.platform != "linux":
        raise OSError(f"it is {platform.system()}")
    _PIVOT_ROOT[platform.machine()]  # KeyError where it is not known
    user, group = os.geteuid(), os.getegid()
    _call("unshare", sum(_NEW.values()))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _mount(source: Path | str | None, target: Path | str, kind: str | None, flags: int) -> None:
    paths = [None if one is None else os.fsencode(one) for one in (source, target, kind)]
    _call("mount", *paths, flags, None)


def _build_root(view: View) -> None:
    """Make a new root, and move into it; the old one is let go of."""
    room, here = Path(view.room), Path.cwd()
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    _mount("tmpfs", room, "tmpfs", _NO_SETUID | _NO_DEVICES)
    links: dict[Path, Path] = {}
    asked: tuple[tuple[Kind, Sequence[str]], ...]
    asked = (("read", [*_SYSTEM, *view.read]), ("hide", view.hide), ("write", view.write))
    kinds = {_resolved(path, links): kind for kind, paths in asked for path in paths if Path(path).exists()}
    for path in sorted(kinds, key=lambda path: len(path.parts)):
        _place(room, path, kinds[path])
    for link, target in links.items():
        if not os.path.lexists(_in(room, link)):
            _in(room, link).parent.mkdir(parents=True, exist_ok=True)
            _in(room, link).symlink_to(target)
    for device in Path("/dev").iterdir():
        if device.name in _DEVICES or device.name.startswith("nvidia"):
            _place(room, device, "write")
    for name in ("tmp", "var/tmp", "dev/shm", "proc", ".old"):
        (room / name).mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        (room / "dev" / name).symlink_to(f"/proc/self/fd/{number}")
    (room / "dev" / "fd").symlink_to("/proc/self/fd")
    try:
        _mount("proc", room / "proc", "proc", _NO_SETUID | _NO_DEVICES)
    except OSError:  # in a container that masks its own; other users' namespaces keep what lies there closed
        _mount("/proc", room / "proc", None, _BIND | _RECURSIVE)
    _call("syscall", _PIVOT_ROOT[platform.machine()], os.fsencode(room), os.fsencode(room / ".old"))
    os.chdir("/")
    _call("umount2", b"/.old", _DETACH)
    Path("/.old").rmdir()
    os.chdir(here if here.is_dir() else "/tmp")


def _in(room: Path, path: Path) -> Path:
    return room / path.relative_to("/")


def _resolved(path: str, links: dict[Path, Path]) -> Path:
    """The real path of `path`, which is absolute; the links that lead there are added to `links`."""
    left, real = list(Path(path).parts), Path("/")
    while left:
        part = left.pop(0)
        real = real.parent if part == ".." else real / part  # an absolute one begins anew
        if real.is_symlink():
            links[real] = target = real.readlink()
            left, real = [*target.parts, *left], real.parent
    return real


def _place(room: Path, path: Path, kind: Kind) -> None:
    """Show or hide a real path in the new root, which has all that lies above it."""
    target, is_folder = _in(room, path), path.is_dir()
    if kind == "hide":
        if os.path.lexists(target) and is_folder:
            _mount("tmpfs", target, "tmpfs", _NO_SETUID | _NO_DEVICES)
        elif os.path.lexists(target):
            _mount("/dev/null", target, None, _BIND)
        return
    if not os.path.lexists(target):
        (target if is_folder else target.parent).mkdir(parents=True, exist_ok=True)
        if not is_folder:
            target.touch()
    _mount(path, target, None, _BIND | _RECURSIVE)
    if kind == "read":
        _make_read_only(target)


def _make_read_only(target: Path) -> None:
    """Also what is mounted below, where the kernel can (5.12 and later)."""
    change = (ctypes.c_uint64 * 4)(_READ_ONLY, 0, 0, 0)
    size = ctypes.sizeof(change)
    try:
        _call("syscall", _SET_ATTRIBUTES, _AT, os.fsencode(target), _AT_RECURSIVE, ctypes.byref(change), size)
    except OSError:
        kept = os.statvfs(target).f_flag & 0b1110  # what was forbidden outside stays so
        _mount(None, target, None, _REMOUNT | _BIND | _READ_ONLY | kept)


def _drop_capabilities() -> None:
    """For good: no program that is started, and no new namespace of users, gets the old root back."""
    _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    for number in range(int(Path("/proc/sys/kernel/cap_last_cap").read_text()) + 1):
        _call("prctl", _DROP_BOUNDING, number, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0)
    _call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
