"""The token that a user shows to a board behind an address: given, in `FARSHIFT_TOKEN`, or in `tokens.toml` in the
user's home, which only its owner may read:

    "https://board.example.org" = "fs_..."
"""

from __future__ import annotations

import os
import re
import tomllib
from ipaddress import ip_address
from urllib.parse import urlsplit

from ...core.errors import FarshiftError
from ...core.files import user_home
from ...core.private import read_private

FILE = "tokens.toml"
HOW_GIVEN = f"give it with --token, as FARSHIFT_TOKEN, or in {FILE} (farshift submit --help)"
_SENDABLE = re.compile(r"[!-~]{1,500}")


def token_for(url: str, given: str = "") -> str:
    """The token for the board behind an address; empty where the user has none. `FarshiftError` where it would be sent
    in the clear, or cannot be sent. No message ever holds it."""
    token = given or os.environ.get("FARSHIFT_TOKEN", "") or _kept(url)
    if token and not _SENDABLE.fullmatch(token):
        raise FarshiftError("the token has characters that no token has: give it as the board told it (fs_..)")
    if token and not _is_private(url):
        raise FarshiftError(f"{url}: a token is only sent over https, or to this machine: use https://")
    return token


def _is_private(url: str) -> bool:
    """Whether nobody between here and there can read what is sent."""
    found = urlsplit(url)
    host = found.hostname or ""
    try:
        here = ip_address(host).is_loopback
    except ValueError:
        here = host == "localhost"
    return found.scheme == "https" or here


def _kept(url: str) -> str:
    path = user_home() / FILE
    if not path.is_file():
        return ""
    try:
        kept = tomllib.loads(read_private(path, "the file of your access tokens").decode())
    except ValueError as error:
        raise FarshiftError(f'{path}: write lines such as "https://board.example.org" = "fs_.."') from error
    found = {str(place).rstrip("/"): token for place, token in kept.items()}.get(url.rstrip("/"), "")
    if not isinstance(found, str):
        raise FarshiftError(f'{path}: write lines such as "https://board.example.org" = "fs_.."')
    return found
