"""The proxies of docs/host-a-board.md in front of a real server: what they are to leave as it is, they leave."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
import tomli_w
from farshift.leaderboard.server.queue import Queue
from farshift.leaderboard.settings import read_board_settings
from running import find_free_port
from test_serve_command import Served

DOCS = Path(__file__).parents[3] / "docs" / "host-a-board.md"
NAME = "board.example.org"
PATIENCE = 60
NEVER = 9
"""A port that nothing listens at."""


def documented(name: str) -> str:
    """A file as the page gives it."""
    result = re.search(rf"```\w+\n(# {re.escape(name)}\n.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    assert result, name
    return result[1]


def put(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text, f"{old} is not in the documented file"
        text = text.replace(old, new)
    return text


def nginx_file(folder: Path, server: int = NEVER, https: int = 443, http: int = 80) -> Path:
    """The documented file, included as Debian's nginx.conf includes one."""
    certificate(folder)
    position = f"/etc/letsencrypt/live/{NAME}"
    text = put(
        documented("board.conf"),
        ("listen 443 ssl", f"listen 127.0.0.1:{https} ssl"),
        ("listen 80", f"listen 127.0.0.1:{http}"),
        (f"{position}/fullchain.pem", str(folder / "cert.pem")),
        (f"{position}/privkey.pem", str(folder / "key.pem")),
        ("127.0.0.1:8000", f"127.0.0.1:{server}"),
    )
    (folder / "board.conf").write_text(text)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main = folder / "nginx.conf"
    main.write_text(
        f"daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}include {folder}/board.conf;\n}}\n"
    )
    return main


def caddy_file(folder: Path, server: int = NEVER, https: int = 443, http: int = 80) -> Path:
    """The documented file with a certificate of Caddy's own making."""
    output = f"{{\nadmin off\nskip_install_trust\ndefault_bind 127.0.0.1\nhttp_port {http}\nhttps_port {https}\n}}\n"
    text = put(
        documented("board.caddyfile"),
        (f"{NAME} {{", f"{NAME} {{\n    tls internal"),
        ("127.0.0.1:8000", f"127.0.0.1:{server}"),
    )
    (folder / "board.caddyfile").write_text(output + text)
    return folder / "board.caddyfile"


FILES = {"nginx": nginx_file, "caddy": caddy_file}


def command(name: str, file: Path, check: bool = False) -> list[str]:
    program = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin") or name
    if name == "nginx":
        return [program, "-c", str(file), "-p", str(file.parent), *(["-t"] if check else [])]
    return [program, "validate" if check else "run", "--adapter", "caddyfile", "--config", str(file)]


def installed(name: str) -> bool:
    return bool(shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin"))


def environment(folder: Path) -> dict[str, str]:
    """Nothing is written to the user's folders."""
    return dict(os.environ) | {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}


@contextmanager
def proxy(name: str, folder: Path, server: int) -> Iterator[tuple[int, int]]:
    """The ports (https, http) of a proxy in front of a server, while the context lasts."""
    folder.mkdir()
    https, http = find_free_port(), find_free_port()
    file = FILES[name](folder, server, https, http)
    with (folder / "said").open("wb") as output:
        process = subprocess.Popen(command(name, file), stdout=output, stderr=output, env=environment(folder))
    try:
        deadline = time.monotonic() + PATIENCE
        while not (_greets(https) and _listens(http)):
            assert process.poll() is None and time.monotonic() < deadline, (folder / "said").read_text()
            time.sleep(0.05)
        yield https, http
    finally:
        process.terminate()
        process.wait(PATIENCE)


def certificate(folder: Path) -> None:
    """A key and a certificate that it signs itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), False)
        .sign(key, SHA256())
    )
    (folder / "cert.pem").write_bytes(built.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _greets(port: int) -> bool:
    """Whether a certificate is there: Caddy listens before it has made one."""
    context = ssl._create_unverified_context()
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as line:
            context.wrap_socket(line, server_hostname=NAME).close()
    except OSError:
        return False
    return True


def _listens(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


MOST = 4 << 20
SPOOFED = "203.0.113.7"


def _there(name: str) -> str:
    if not installed(name):
        pytest.skip(f"{name} is not installed")
    return name


@pytest.mark.parametrize("name", list(FILES))
def test_the_documented_file_is_one_that_the_proxy_takes(name, tmp_path):
    file = FILES[_there(name)](tmp_path)
    done = subprocess.run(command(name, file, check=True), capture_output=True, text=True, env=environment(tmp_path))
    assert done.returncode == 0, done.stderr
    warned = [line for line in done.stderr.splitlines() if "[warn]" in line and "http2" not in line]
    assert warned == []


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_the_documented_unit_is_one_that_systemd_takes(tmp_path):
    unit = tmp_path / "farshift-board.service"
    unit.write_text(documented(unit.name).replace("/srv/board/venv/bin/farshift", shutil.which("true") or "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    assert [line for line in done.stderr.splitlines() if unit.name in line and "User" not in line] == []


@pytest.fixture(params=list(FILES))
def name(request) -> str:
    return _there(request.param)


@pytest.fixture
def served(own, tmp_path) -> Iterator[Served]:
    output = {"open": True, "submission_bytes": MOST, "queued_at_once": 100}
    (own.path / "settings.toml").write_text(tomli_w.dumps({"server": output}))
    result = Served(own.path, tmp_path / "log", "--workers", "0", "--proxy-headers")
    yield result
    result.end()


@pytest.mark.slow
def test_a_board_behind_a_proxy_is_as_without_one(name, served, own, tmp_path):
    direct = served.get("")
    port = int(served.url.rpartition(":")[2])
    content = os.urandom(MOST - 1)
    with proxy(name, tmp_path / "proxy", port) as (https, http):
        transport = httpx2.HTTPTransport(verify=False, local_address="127.0.0.2")
        with httpx2.Client(transport=transport, base_url=f"https://127.0.0.1:{https}", timeout=PATIENCE) as client:

            def ask(method: str, path: str, body: bytes = b"", **headers: str) -> httpx2.Response:
                output = {key.replace("_", "-"): value for key, value in headers.items()}
                output |= {"Host": NAME, "X-Forwarded-For": SPOOFED}
                tls = {"sni_hostname": NAME}
                return client.request(method, path, content=body, headers=output, extensions=tls)

            page = ask("GET", "/", Accept_Encoding="gzip")
            assert (page.status_code, page.headers["Content-Encoding"]) == (200, "gzip")
            assert page.headers["Strict-Transport-Security"] == "max-age=31536000"
            assert page.headers["Content-Security-Policy"] == direct.headers["Content-Security-Policy"]
            plain = ask("GET", "/", Accept_Encoding="identity")
            assert plain.content == direct.content
            assert plain.headers["ETag"].startswith('"'), "a strong tag"
            again = ask("GET", "/", Accept_Encoding="gzip", If_None_Match=page.headers["ETag"])
            assert (again.status_code, again.content) == (304, b"")
            stored = own.standings()[0].submission
            some = ask("GET", f"/submissions/{stored}.zip", Range="bytes=0-9")
            assert (some.status_code, len(some.content)) == (206, 10)
            redirected = httpx2.get(f"http://127.0.0.1:{http}/x?y", headers={"Host": NAME}, timeout=PATIENCE)
            assert redirected.status_code in (301, 308)
            assert redirected.headers["Location"] == f"https://{NAME}/x?y"
            large = ask("POST", "/api/v1/submissions", b"x" * (MOST + 1), Content_Type="application/zip")
            assert (large.status_code, large.json()["error"].split(":")[0]) == (413, f"{MOST + 1} bytes")

            done = ask("POST", "/api/v1/submissions", content, Content_Type="application/zip")
            assert done.status_code == 202, done.text
            job = Queue(own.ledger.store, read_board_settings(own.path).server).find(done.json()["id"])
            assert (job.size, job.owner) == (len(content), "address 127.0.0.2"), "who sends is told by the proxy alone"
    assert SPOOFED not in served.log.read_text()
