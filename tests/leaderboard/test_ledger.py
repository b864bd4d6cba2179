"""The ledger: what is appended stays, in one chain, signed; and whatever was done to it is found."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import postgres
import pytest
from cryptography.hazmat.primitives.asymmetric import x25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from farshift import FarshiftError
from farshift.core.canonical import to_canonical_json
from farshift.core.files import read_private, write_private
from farshift.leaderboard.ledger import Record
from farshift.leaderboard.ledger.keys import SigningKey, create_key, is_signed_by
from farshift.leaderboard.ledger.record import GENESIS, find_chain_problems, hash_record, read_line
from farshift.leaderboard.ledger.store import Store
from hypothesis import given
from hypothesis import strategies as st
from ledgers import ledger_in, withdrawn


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger(request, tmp_path):
    url = request.getfixturevalue("server").database() if request.param == "postgresql" else None
    return ledger_in(tmp_path, url)


def test_records_come_out_as_they_went_in_each_holding_the_hash_of_the_one_before(ledger):
    added = ledger.append([("submitted", {"team": "wir & <ihr>", "value": 0.1}), withdrawn(1)])
    records = ledger.records()
    assert records[1:] == added
    assert [record.kind for record in records] == ["opened", "submitted", "withdrawn"]
    assert [record.seq for record in records] == [0, 1, 2]
    assert [record.previous for record in records] == [GENESIS, records[0].hash, records[1].hash]
    assert find_chain_problems(records, ledger.key) == []


def test_events_are_appended_all_or_none(ledger):
    with pytest.raises(ValueError, match="unknown kind of record 'forgotten'"):
        ledger.append([withdrawn(1), ("forgotten", {})])
    with pytest.raises(ValueError, match="not JSON compliant"):
        ledger.append([withdrawn(1), ("withdrawn", {"reason": float("nan")})])
    assert len(ledger.records()) == 1


def test_appends_from_many_threads_make_one_chain(ledger):
    with ThreadPoolExecutor(8) as threads:
        added = list(threads.map(lambda number: ledger.append([withdrawn(number)])[0], range(40)))
    records = ledger.records()
    assert sorted(added, key=lambda record: record.seq) == records[1:]
    assert find_chain_problems(ledger.records(), ledger.key) == []


def test_two_processes_append_to_one_chain(ledger, tmp_path, python):
    code = (
        "import sys; sys.path[:0] = sys.argv[3:]\n"
        "from pathlib import Path\nfrom ledgers import ledger_in, withdrawn\n"
        "ledger = ledger_in(Path(sys.argv[1]), sys.argv[2] or None)\n"
        "print(*[ledger.append([withdrawn(number)])[0].seq for number in range(25)])"
    )
    url = "" if ledger.store.dialect == "sqlite" else ledger.store.url.render_as_string(hide_password=False)
    command = ("-c", code, tmp_path, url, Path(__file__).parent)
    with ThreadPoolExecutor(2) as threads:
        both = list(threads.map(lambda _: python.run(*command), range(2)))
    seen = [int(seq) for item in both for seq in item.stdout.split()]
    assert sorted(seen) == list(range(1, 51))
    assert find_chain_problems(ledger.records(), ledger.key) == []


def chain(tmp_path: Path, length: int = 6) -> tuple[list[Record], str]:
    ledger = ledger_in(tmp_path)
    ledger.append([withdrawn(number) for number in range(1, length)])
    return ledger.records(), ledger.key


def edited(record: Record, **changes: object) -> Record:
    """A record with other content and the hash that fits it: what a forger without the key can do."""
    new = replace(record, **changes)
    return replace(new, hash=hash_record(new.seq, new.time, new.kind, new.body, new.previous))


TAMPERED = {
    "one removed": (lambda r: r[:2] + r[3:], ["record 2 is missing before record 3"]),
    "two removed": (lambda r: r[:2] + r[4:], ["records 2 to 3 are missing before record 4"]),
    "the first removed": (
        lambda r: r[1:],
        [
            "the ledger does not begin with the board's opening: records were removed",
            "record 0 is missing before record 1",
        ],
    ),
    "two swapped": (
        lambda r: [*r[:2], r[3], r[2], *r[4:]],
        [
            "record 2 is missing before record 3",
            "record 2 comes after record 3: records were reordered or repeated",
            "record 3 is missing before record 4",
        ],
    ),
    "one repeated": (
        lambda r: [*r[:3], r[2], *r[3:]],
        ["record 2 comes after record 2: records were reordered or repeated"],
    ),
    "a body changed": (
        lambda r: [*r[:2], replace(r[2], body=r[2].body | {"reason": "another"}), *r[3:]],
        ["record 2 (withdrawn) was changed: its hash does not match"],
    ),
    "a time changed, with a hash that fits": (
        lambda r: [*r[:2], edited(r[2], time="2020-01-01T00:00:00Z"), *r[3:]],
        ["record 3 does not have the hash of the record before it", "record 2 is not signed by the board's key"],
    ),
    "the last one changed, with a hash that fits": (
        lambda r: [*r[:-1], edited(r[-1], body={})],
        ["record 5 is not signed by the board's key"],
    ),
    "a signature of another record": (
        lambda r: [*r[:4], replace(r[4], signature=r[3].signature), r[5]],
        ["record 4 is not signed by the board's key"],
    ),
    "everything removed": (
        lambda r: [],
        ["the ledger does not begin with the board's opening: records were removed"],
    ),
    "opened again": (
        lambda r: [*r[:5], edited(r[5], kind="opened")],
        ["record 5 opens the board again", "record 5 is not signed by the board's key"],
    ),
}


@pytest.mark.attack("operator", "records of a ledger changed, removed, added or reordered")
@pytest.mark.parametrize("what", TAMPERED)
def test_every_broken_place_of_a_chain_is_named(tmp_path, what):
    records, key = chain(tmp_path)
    assert find_chain_problems(records, key, head=records[3].hash) == []
    tamper, complaints = TAMPERED[what]
    assert find_chain_problems(tamper(records), key) == complaints


@pytest.mark.attack("operator", "records of a ledger changed, removed, added or reordered")
def test_a_ledger_signed_by_another_key_is_not_the_boards(tmp_path):
    records, key = chain(tmp_path / "ours")
    forged, other = chain(tmp_path / "theirs")
    assert find_chain_problems(forged, other) == []
    assert find_chain_problems(forged, key) == [f"no record is signed by the board's key {key}"]
    assert not is_signed_by("no key", records[0].hash, records[0].signature)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return chain(tmp_path_factory.mktemp("chain"))


@pytest.mark.attack("operator", "records of a ledger changed, removed, added or reordered")
@given(data=st.data())
def test_no_change_of_a_line_goes_unseen(made, data):
    records, key = made
    which = data.draw(st.integers(0, len(records) - 1))
    line = bytearray(records[which].line())
    position = data.draw(st.integers(0, len(line) - 1))
    line[position] ^= 1 << data.draw(st.integers(0, 7))
    try:
        changed = read_line(bytes(line))
    except ValueError:
        return
    assert find_chain_problems([*records[:which], changed, *records[which + 1 :]], key)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(body=st.dictionaries(st.text(), json_values, max_size=5))
def test_a_record_is_read_back_from_its_line(body):
    try:
        hash = hash_record(3, "t", "withdrawn", body, GENESIS)
    except UnicodeEncodeError:  # half a surrogate pair is not text
        return
    record = Record(3, "t", "withdrawn", body, GENESIS, hash, "0" * 128)
    again = read_line(record.line())
    assert again.line() == record.line()
    assert again.fits()


@pytest.mark.parametrize(
    "change",
    [
        lambda read: {**read, "extra": 1},
        lambda read: {key: value for key, value in read.items() if key != "time"},
        lambda read: {**read, "seq": True},
        lambda read: {**read, "seq": "1"},
        lambda read: {**read, "body": []},
        lambda read: {**read, "hash": "A" * 64},
        lambda read: {**read, "signature": "00"},
        lambda read: [read],
    ],
)
def test_a_line_that_is_not_exactly_a_record_is_none(tmp_path, change):
    records, _ = chain(tmp_path, 2)
    with pytest.raises(ValueError, match="^(is no|has (no|a missing or invalid))"):
        read_line(to_canonical_json(change(json.loads(records[1].line()))))
    for line in (b"", b"[" * 100_000, records[1].line() + b" ", b"\xff\xfe", b'{"seq":1e999}'):
        with pytest.raises(ValueError, match="^is no"):
            read_line(line)


def test_nothing_is_appended_to_a_record_that_was_changed(tmp_path):
    ledger = ledger_in(tmp_path)
    ledger.append([withdrawn(1)])
    with ledger.store.writing() as open_:
        open_.exec_driver_sql("""UPDATE records SET body = '{"reason":"none"}' WHERE seq = 1""")
    with pytest.raises(FarshiftError, match="the last record .* was changed: nothing is appended to it"):
        ledger.append([withdrawn(2)])
    with pytest.raises(FarshiftError, match="record 1 .withdrawn. was changed"):
        ledger.records()
    with ledger.store.writing() as open_:
        open_.exec_driver_sql("UPDATE records SET body = '{' WHERE seq = 1")
    with pytest.raises(FarshiftError, match="the body of record 1 is not JSON"):
        ledger.records()


def test_a_private_key_is_for_its_owner_alone(tmp_path):
    key = create_key(tmp_path / "private" / "key.pem")
    assert key.path.stat().st_mode & 0o777 == 0o600
    assert key.path.parent.stat().st_mode & 0o777 == 0o700
    assert create_key(key.path).public == key.public, "a key that is there is kept"
    assert is_signed_by(key.public, GENESIS, key.sign(GENESIS))
    key.path.chmod(0o640)
    with pytest.raises(FarshiftError, match="is readable by others .mode 640.: chmod 600"):
        SigningKey(key.path).sign(GENESIS)


def test_a_key_that_is_none_or_another_is_told_in_a_line(tmp_path):
    ledger = ledger_in(tmp_path)
    ledger.signing = create_key(tmp_path / "other.pem")
    with pytest.raises(FarshiftError, match="other.pem is not this board's key"):
        ledger.append([withdrawn(1)])
    with pytest.raises(FarshiftError, match="is missing: put it back"):
        SigningKey(tmp_path / "absent.pem").sign(GENESIS)
    write_private(tmp_path / "bad.pem", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    with pytest.raises(FarshiftError, match="has no PEM private key"):
        SigningKey(tmp_path / "bad.pem").sign(GENESIS)
    other = x25519.X25519PrivateKey.generate()
    write_private(tmp_path / "x.pem", other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(FarshiftError, match="is not an ed25519 key"):
        SigningKey(tmp_path / "x.pem").sign(GENESIS)


def test_private_files_are_written_whole_and_never_readable_by_others(tmp_path):
    before = os.umask(0)
    try:
        write_private(tmp_path / "private" / "seed", b"one")
        write_private(tmp_path / "private" / "seed", b"two")
    finally:
        os.umask(before)
    assert (tmp_path / "private" / "seed").stat().st_mode & 0o777 == 0o600
    assert read_private(tmp_path / "private" / "seed", "a seed") == b"two"
    assert [path.name for path in (tmp_path / "private").iterdir()] == ["seed"]


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_a_database_without_a_ledger_is_refused(tmp_path, dialect, request):
    url = request.getfixturevalue("server").database() if dialect == "postgresql" else f"sqlite:///{tmp_path / 'l.db'}"
    store = Store(url)
    with pytest.raises(FarshiftError, match="the ledger in .* is missing: restore it"):
        store.require_tables()
    store.create_tables()
    store.require_tables()


@pytest.mark.attack("host", "passwords exposed in messages")
def test_a_password_is_in_no_message(tmp_path, server):
    database = server.database()
    wrong = Store(database.replace(postgres.PASSWORD, "hunter2-wrong"))
    with pytest.raises(FarshiftError, match="password authentication failed") as refused:
        wrong.require_tables()
    nowhere = Store("postgresql://owner:hunter2-wrong@127.0.0.1:1/none?password=hunter2-wrong")
    with pytest.raises(FarshiftError, match="refused") as absent:
        nowhere.require_tables()
    for error in (refused, absent):
        assert "hunter2" not in str(error.value)
    assert "hunter2" not in wrong.name + nowhere.name
    with pytest.raises(FarshiftError, match="cannot be stored in mysql"):
        Store("mysql://owner:hunter2@host/db")
    with pytest.raises(FarshiftError, match="not a database URL") as odd:
        Store("hunter2:no url")
    assert "hunter2" not in str(odd.value)
