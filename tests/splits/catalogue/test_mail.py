"""Mail: what is read of it, when it arrived, and that no mail stands twice."""

from __future__ import annotations

import io
import json
import tarfile

import pytest
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.readers.mail_archive import find_arrival_month, read

OPTIONS = {"folder": "package/data", "spam": ["spam-1"], "hard": ["hard-ham-1"], "years": [2001, 2003], "longest": 40}


def archive(tmp_path, mails: dict[str, str]):
    path = tmp_path / "mails.tgz"
    with tarfile.open(path, "w:gz") as tape:
        for name, text in {"package/package.json": "{}", **mails}.items():
            content = text if name.endswith("package.json") else json.dumps({"text": text})
            entry = tarfile.TarInfo(name)
            entry.size = len(content.encode())
            tape.addfile(entry, io.BytesIO(content.encode()))
    return {"mails.tgz": path}


def mail(subject: str, body: str, date: str = "Mon, 9 Sep 2002 10:00:00 +0100") -> str:
    return f"From: a@example.org\nSubject: {subject}\nDate: {date}\n\n{body}"


def test_a_mail_is_its_subject_and_the_head_of_its_body_and_its_collection_says_what_it_is(tmp_path):
    mails = {
        "package/data/easy-ham-1/2.json": mail("hello\n\tagain", "x" * 60),
        "package/data/easy-ham-1/1.json": mail("first", "line one\r\n\r\nline two"),
        "package/data/hard-ham-1/1.json": mail("news", "<html>"),
        "package/data/spam-1/1.json": "From: b@example.org\n\nno subject",
    }
    table = read(archive(tmp_path, mails), **OPTIONS).to_pydict()
    assert table["mail"] == [
        "Subject: first\n\nline one\n\nline two",
        f"Subject: hello again\n\n{'x' * 40}",
        "Subject: news\n\n<html>",
        "Subject: \n\nno subject",
    ]
    assert table["spam"] == [0, 0, 0, 1]
    assert table["hardness"] == [0, 0, 1, 0]
    assert table["month"] == [21, 21, 21, 0]


def test_of_mails_that_are_the_same_but_for_case_and_white_space_the_first_is_kept(tmp_path):
    mails = {
        "package/data/easy-ham-1/1.json": mail("Offer", "buy  now"),
        "package/data/hard-ham-1/1.json": mail("other", "buy now"),
        "package/data/spam-1/1.json": mail("OFFER", "Buy\nnow "),
        "package/data/spam-1/2.json": mail("offer", "buy later"),
    }
    table = read(archive(tmp_path, mails), **OPTIONS)
    assert table["collection"].to_pylist() == ["easy-ham-1", "hard-ham-1", "spam-1"]


@pytest.mark.parametrize(
    ("header", "month"),
    [
        ("From a@b  Mon Jun 24 17:06:54 2002\nDate: Tue, 1 Jan 2002 00:00:00 +0000", 18),
        ("Delivery-Date: Tue May 28 02:53:28 2002\nDate: Tue, 1 Jan 2002 00:00:00 +0000", 17),
        ("Received: from x by y; Wed, 2 Jan 2002\n\t10:55:03 -0800\nDate: Fri, 1 Mar 2002 00:00:00 +0000", 13),
        ("Received: from x; Wed, 13 Sep 1972 10:00:00 -0800\nDate: Fri, 1 Mar 2002 00:00:00 +0000", 15),
        ("Date: Fri, 31 Dec 1999 00:00:00 +0000", 0),
        ("Date: some day", 0),
        ("", 0),
    ],
)
def test_the_month_of_arrival_is_told_by_the_most_trustworthy_witness(header, month):
    assert find_arrival_month(header, 2001, 2003) == month


def test_an_archive_that_cannot_be_read_or_lacks_a_collection_is_refused(tmp_path):
    (tmp_path / "broken.tgz").write_bytes(b"no archive")
    with pytest.raises(BadData, match=r"broken\.tgz: not a readable archive"):
        read({"broken.tgz": tmp_path / "broken.tgz"}, **OPTIONS)
    item = archive(tmp_path, {"package/data/spam-1/1.json": mail("a", "b")})
    with pytest.raises(BadDefinition, match=r"mails\.tgz has no mails of hard-ham-1"):
        read(item, **OPTIONS)
