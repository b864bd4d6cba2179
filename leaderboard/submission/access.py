"""The access token for a board behind a URL: given explicitly, in `FARSHIFT_TOKEN`, or in `tokens.toml` in the user's
home, which must be readable only by its owner:

    "https://board.example.org" = "fs_..."
"""

from __future__ import annotations

import re
import tomllib
from ipaddress import ip_address
from urllib.parse import urlsplit

from ...core.durable import read_private
from ...core.errors import FarshiftError
from ...core.files import get_user_home
from ...core.settings import read_settings

FILE = "tokens.toml"
HOW_GIVEN = f"give it with --token, as FARSHIFT_TOKEN, or in {FILE} (farshift submit --help)"
_SENDABLE = re.compile(r"[!-~]{1,500}")


def find_token(url: str, given: str = "") -> str:
    """The token for the board behind a URL; empty if the user has none. Raises `FarshiftError` if it would be sent
    unencrypted, or has invalid characters. No message contains the token."""
    token = given or read_settings().token or _read_token(url)
    if token and not _SENDABLE.fullmatch(token):
        raise FarshiftError("the token has invalid characters: copy it as the board printed it (fs_..)")
    if token and not _is_private(url):
        raise FarshiftError(f"{url}: a token is only sent over https, or to this machine: use https://")
    return token


def _is_private(url: str) -> bool:
    """Whether the connection to a URL is private: encrypted, or to this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        is_local = ip_address(host).is_loopback
    except ValueError:
        is_local = host == "localhost"
    return parts.scheme == "https" or is_local


def _read_token(url: str) -> str:
    path = get_user_home() / FILE
    if not path.is_file():
        return ""
    try:
        tokens = tomllib.loads(read_private(path, "the file of your access tokens").decode())
    except ValueError as error:
        raise FarshiftError(f'{path}: lines must be like "https://board.example.org" = "fs_.."') from error
    matching_token = {str(address).rstrip("/"): token for address, token in tokens.items()}.get(url.rstrip("/"), "")
    if not isinstance(matching_token, str):
        raise FarshiftError(f'{path}: lines must be like "https://board.example.org" = "fs_.."')
    return matching_token
