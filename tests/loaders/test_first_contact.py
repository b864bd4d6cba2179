"""A definition of public data: its first pull holds them to the published counts, and freezes them in the user's home."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from farshift import load
from farshift.core.errors import Unavailable
from farshift.core.files import LicenceNotAccepted
from farshift.loaders.acquire.expected import CountsDiffer
from farshift.loaders.acquire.source import find_source
from farshift.loaders.split import open_split
from farshift.splits.catalogue import find_manifest

SOURCE = """
name = "clinics"
version = 1
title = "Visits to three clinics"
licence = "{licence}"
accept = "{accept}"
terms = "https://example.org/terms"
citation = "Made for a test"
fields = [
    {{ name = "age", type = "int64", role = "input" }},
    {{ name = "ill", type = "int64", role = "label" }},
    {{ name = "clinic", type = "string", role = "meta" }},
]

[expected]
reference = "Doe et al. 2020, table 1"
rows = 60
[expected.values]
clinic = {{ east = 20, north = 20, west = 20 }}
"clinic,ill" = {{ "east,0" = 10, "east,1" = 10, "north,0" = 10, "north,1" = 10, "west,0" = 10, "west,1" = 10 }}
[expected.distinct]
age = 60

[[distributions]]
name = "as published"
reader = "table"
files = [{{ name = "visits.csv"{known} }}]
[distributions.options]
columns = {{ age = "age", ill = "ill", clinic = "clinic" }}
"""

SPLIT = """
name = "clinics/west"
version = 1
kind = "domain"
title = "Visits, tested at another clinic"
label = "ill"
rule = "domain/hold_out"
source = { name = "clinics" }
parameters = { field = "clinic", ood = ["west"], id_test = 0.25, seed = "clinics" }
group = { name = "clinic" }
[published]
reference = "Doe et al. 2020, table 2"
rows = { train = 30, id_test = 10, ood_test = 20 }
"""

ROWS = [(age, age % 2, ("east", "north", "west")[age % 3]) for age in range(60)]


def csv(rows=ROWS) -> bytes:
    return ("age,ill,clinic\n" + "".join(f"{age},{ill},{clinic}\n" for age, ill, clinic in rows)).encode()


@pytest.fixture
def defined(tmp_path, monkeypatch, cache):
    """A place where the definition lies, a home of nobody's yet, and a folder with the data."""

    def lay(licence="CC BY 4.0", accept="", known="", data=None):
        position = tmp_path / "definitions"
        (position / "loaders/sources").mkdir(parents=True, exist_ok=True)
        folder = position / "splits/manifests/clinics/west/v1"
        folder.mkdir(parents=True, exist_ok=True)
        text = SOURCE.format(licence=licence, accept=accept, known=known)
        (position / "loaders/sources/clinics.toml").write_text(text)
        (folder / "split.toml").write_text(SPLIT)
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data/visits.csv").write_bytes(csv() if data is None else data)
        return tmp_path / "data"

    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path / "definitions"))
    monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / "home"))
    (tmp_path / "definitions").mkdir()
    return lay


def written(home: Path) -> list[str]:
    return sorted(path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())


def answered(command, *arguments: object):
    """The document of a command that succeeds."""
    done = command(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_first_pull_freezes_a_definition_and_later_ones_need_no_data(defined, command, tmp_path):
    data = defined()
    assert find_manifest("clinics/west").frozen is False
    (pulled,) = answered(command, "splits", "pull", "clinics/west", "--data", data)
    assert pulled["parts"] == {"train": 30, "id_test": 10, "ood_test": 20}
    assert "--data is not read" in command("splits", "pull", "clinics/west", "--data", data).stderr
    shutil.rmtree(data)
    assert len(load("clinics/west", part="ood_test")) == 20
    assert answered(command, "splits", "verify", "clinics/west")[0]["state"] == "verified"
    states = {item["name"]: item["state"] for item in answered(command, "splits", "list")}
    assert states["clinics/west"] == "pulled"


def test_two_homes_give_the_same_identity(defined, tmp_path, monkeypatch):
    data = defined()
    identities = set()
    for number in range(2):
        monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / f"home{number}"))
        monkeypatch.setenv("FARSHIFT_CACHE", str(tmp_path / f"cache{number}"))
        identities.add(open_split("clinics/west", (data,)).manifest.identity)
    assert len(identities) == 1


def test_rows_that_are_not_the_published_ones_are_refused_with_the_counts_that_differ(defined, command, tmp_path):
    wrong = [(age, ill, "south" if clinic == "west" else clinic) for age, ill, clinic in ROWS[:-12]]
    data = defined(data=csv(wrong))
    done = command("splits", "pull", "clinics/west", "--data", data)
    assert done.returncode == 2
    output = " ".join(done.stderr.split())
    assert "differs from the published counts (rows: 60 expected, 48 found; " in output
    assert "clinic=south: 0 expected, 16 found; " in output and " more) of Doe et al. 2020, table 1" in output
    assert written(tmp_path / "home") == []
    with pytest.raises(CountsDiffer):
        load("clinics/west", mirror=data)


def test_a_part_of_another_size_than_published_is_refused(defined, tmp_path):
    data = defined()
    path = tmp_path / "definitions/splits/manifests/clinics/west/v1/split.toml"
    path.write_text(SPLIT.replace("train = 30, id_test = 10", "train = 29, id_test = 11"))
    with pytest.raises(Exception, match="part train has 30 rows .* but 29 were published"):
        load("clinics/west", mirror=data)
    assert written(tmp_path / "home") == [], "a second pull may bring other data"


def test_a_copy_with_another_md5_or_size_is_not_taken(defined):
    md5 = hashlib.md5(csv()).hexdigest()
    data = defined(known=f', bytes = {len(csv())}, md5 = "{md5}"', data=csv().replace(b"east", b"EAST"))
    with pytest.raises(Unavailable, match="has md5 .* instead of the published"):
        load("clinics/west", mirror=data)
    (data / "visits.csv").write_bytes(csv() + b"\n")
    with pytest.raises(Unavailable, match=f"has {len(csv()) + 1} bytes instead of the published {len(csv())}"):
        load("clinics/west", mirror=data)
    (data / "visits.csv").write_bytes(csv())
    assert len(load("clinics/west", mirror=data)) == 30


def test_a_licence_is_accepted_once(defined, command, tmp_path, monkeypatch):
    data = defined(licence="CC BY-NC 4.0", accept="CC BY-NC 4.0")
    done = command("splits", "pull", "clinics/west", "--data", data)
    assert done.returncode == 2
    assert "published under CC BY-NC 4.0 (https://example.org/terms)" in done.stderr
    with pytest.raises(LicenceNotAccepted):
        load("clinics/west", mirror=data)
    monkeypatch.setenv("FARSHIFT_ACCEPT", "CC BY 4.0")
    with pytest.raises(LicenceNotAccepted):
        load("clinics/west", mirror=data)
    monkeypatch.delenv("FARSHIFT_ACCEPT")
    command("splits", "pull", "clinics/west", "--data", data, "--accept", "CC BY-NC 4.0")
    assert (tmp_path / "home/accepted.txt").read_text() == "CC BY-NC 4.0\n"
    shutil.rmtree(tmp_path / "home/splits")
    assert len(load("clinics/west", mirror=data)) == 30


def test_a_licence_is_asked_for_also_where_the_package_pins_the_rows(defined, command, tmp_path, monkeypatch):
    data = defined(licence="CC BY-NC 4.0", accept="CC BY-NC 4.0")
    monkeypatch.setenv("FARSHIFT_ACCEPT", "CC BY-NC 4.0")
    answered(command, "splits", "pull", "clinics/west", "--data", data)
    text = SOURCE.format(licence="CC BY-NC 4.0", accept="CC BY-NC 4.0", known="")
    pulled = find_source("clinics").definition
    assert pulled.distributions[0].files[0].sha256 == hashlib.sha256(csv()).hexdigest()
    pins = f'rows = {pulled.rows}\ndigest = "{pulled.digest}"\n'
    (tmp_path / "definitions/loaders/sources/clinics.toml").write_text(pins + text)
    monkeypatch.delenv("FARSHIFT_ACCEPT")
    monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / "another home"))
    monkeypatch.setenv("FARSHIFT_CACHE", str(tmp_path / "another cache"))
    with pytest.raises(LicenceNotAccepted):
        find_source("clinics").table((data,))
    monkeypatch.setenv("FARSHIFT_ACCEPT", "CC BY-NC 4.0")
    assert find_source("clinics").table((data,)).num_rows == 60


def test_a_freeze_that_the_lock_does_not_have_is_refused(defined, monkeypatch, tmp_path):
    data = defined()
    lock = tmp_path / "manifests.lock"
    lock.write_text(f"clinics/west@1 {'0' * 64}\n")
    monkeypatch.setattr("farshift.splits.catalogue.LOCK", lock)
    with pytest.raises(Exception, match="clinics/west@1 is published with other rows"):
        load("clinics/west", mirror=data)


def test_a_definition_that_changed_is_frozen_anew(defined, tmp_path):
    data = defined()
    before = open_split("clinics/west", (data,)).manifest.identity
    path = tmp_path / "definitions/splits/manifests/clinics/west/v1/split.toml"
    path.write_text(SPLIT.replace('ood = ["west"]', 'ood = ["east"]'))
    assert find_manifest("clinics/west").frozen is False
    (tmp_path / "home/splits/manifests/clinics/west/v1/split.toml").unlink()
    assert open_split("clinics/west", (data,)).manifest.identity != before


def test_without_data_the_line_says_where_to_put_them(defined, command):
    defined()
    done = command("splits", "pull", "clinics/west")
    assert done.returncode == 2
    assert "Put it under this name in a folder, and run farshift splits pull NAME --data FOLDER" in done.stderr
    assert json.loads(command("splits", "list", "--json").stdout)
