"""A folder of sounds of one's own is a split, as a folder of pictures is."""

from __future__ import annotations

import json

import pytest
from encoded_files import folder, picture, sound
from farshift import FarshiftError, load
from farshift.loaders.acquire.own_data import Data
from pydantic import ValidationError

DRAFT = """
name = "clips/carol"
version = 1
kind = "domain"
title = "Words of a speaker who was never heard"
label = "word"
rule = "domain/hold_out"
parameters = { field = "speaker", ood = ["carol"] }
data = { audio = "clips/{speaker}/{word}/{file}", inputs = ["audio"], labels = ["word"], meta = ["speaker"] }
benchmark = {}
"""
FILES = {
    f"{speaker}/{word}/{number}.wav": sound(400 * position + 10 * at + number)
    for position, speaker in enumerate(("ann", "bob", "carol"))
    for at, word in enumerate(("no", "yes"))
    for number in range(10)
}


@pytest.fixture
def home(tmp_path, cache, monkeypatch):
    folder(tmp_path / "clips", FILES)
    (tmp_path / "carol.toml").write_text(DRAFT)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    return tmp_path


def build(command, home):
    return command("splits", "build", home / "carol.toml", "--out", home / "splits/manifests", "--json")


def test_sounds_keep_their_bytes_and_what_their_paths_say(command, home):
    done = build(command, home)
    assert json.loads(done.stdout)["split"] == "clips/carol@1"
    part = load("clips/carol", part="ood_test")
    assert part.schema["audio"].type == "audio"
    rows = part.numpy(["audio", "word", "speaker"])
    assert {bytes(item) for item in rows["audio"]} == {
        locked for name, locked in FILES.items() if name.startswith("carol")
    }
    assert set(rows["speaker"].tolist()) == {"carol"}
    by_content = {content: name.split("/")[1] for name, content in FILES.items()}
    assert [("no", "yes")[word] for word in rows["word"]] == [by_content[bytes(item)] for item in rows["audio"]]


def test_a_sound_that_is_none_is_named(command, home):
    (home / "clips/bob/no/3.wav").write_bytes(picture())
    done = build(command, home)
    assert done.returncode == 2
    assert "bob/no/3.wav" in done.stderr


def test_the_field_of_the_sound_has_to_be_named(command, home):
    (home / "carol.toml").write_text(DRAFT.replace('inputs = ["audio"]', 'inputs = ["file"]'))
    done = build(command, home)
    assert done.returncode == 2
    assert 'no field for the audio clip itself: add it by inputs = ["audio"]' in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{speaker}/{word}/{file}", "{speaker}/*/{file}", "has no part {word} (it has {speaker}, {file})"),
        ('labels = ["word"]', 'labels = ["word"], classes = ["audio"]', "classes: 'audio' is not a field of a part"),
    ],
)
def test_a_field_that_the_paths_do_not_give_is_refused(command, home, old, new, message):
    (home / "carol.toml").write_text(DRAFT.replace(old, new))
    done = build(command, home)
    assert done.returncode == 2
    assert message in done.stderr


def test_pictures_and_sounds_are_two_sets_of_data():
    with pytest.raises((ValidationError, FarshiftError), match="give `files`, or one of `images`, `audio` and `texts`"):
        Data(images="a/{file}", audio="b/{file}", inputs=["image"], labels=["x"])
    with pytest.raises((ValidationError, FarshiftError), match="`audio` is for local files"):
        Data(hub="owner/name", audio="b/{file}", inputs=["audio"], labels=["x"])
