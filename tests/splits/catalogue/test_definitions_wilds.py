"""The ten sets of WILDS in their real layouts, made small: pulled into the official parts, as WILDS' code reads them."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from farshift import FarshiftError, load
from farshift.core.errors import BadData
from hub_client import environment
from hub_server import REPOSITORY
from hub_server import serving as hub_serving
from twins import csv, gz, laid, npy, picture, pulled, tar, twin, values, zipped


def camelyon17():
    files, rows = {}, []
    for number in range(30):
        centre = number % 5
        patient, node, x, y = f"{centre * 20 + 4:03d}", number % 2, 32 * number, 64
        name = f"patches/patient_{patient}_node_{node}/patch_patient_{patient}_node_{node}_x_{x}_y_{y}.png"
        files[name] = picture(number)
        # The table's own split says 0 or 1 everywhere: of hospitals 1 and 2 it is not to be believed.
        rows.append((number, patient, node, x, y, number // 5 % 2, centre * 10, centre, number % 10 // 5))
    head = ",patient,node,x_coord,y_coord,tumor,slide,center,split"  # codespell:ignore center
    files["metadata.csv"] = csv(head, rows)
    return files


def test_camelyon17_tests_at_one_hospital_and_validates_at_another(place, tmp_path):
    name = twin("wilds_camelyon17/official", place)
    split, parts = pulled(name, laid(tmp_path / "data/camelyon17_v1.0", camelyon17()).parent)
    assert parts == {"train": 9, "id_val": 9, "ood_val": 6, "ood_test": 6}
    assert set(values(split, "ood_val", "hospital")) == {"1"}
    assert set(values(split, "ood_test", "hospital")) == {"2"}
    assert set(values(split, "train", "hospital")) == {"0", "3", "4"}
    assert values(split, "ood_test", "tumour") == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("head", ["", "./", "camelyon17_v1.0/"])
def test_an_archive_is_read_as_a_folder_is(place, tmp_path, head):
    name = twin("wilds_camelyon17/official", place)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/archive.tar.gz").write_bytes(tar(camelyon17(), head))
    packed, _ = pulled(name, tmp_path / "data")
    digest = packed.source.definition.digest
    for path in (tmp_path / "home").rglob("*.toml"):
        path.unlink()
    unpacked, _ = pulled(name, laid(tmp_path / "data2/camelyon17_v1.0", camelyon17()))
    assert unpacked.source.definition.digest == digest


def test_a_missing_an_empty_and_a_wrong_file_are_named(place, tmp_path):
    name = twin("wilds_camelyon17/official", place)
    files = camelyon17()
    first = sorted(files)[1]
    with pytest.raises(BadData, match="has no bytes"):
        pulled(name, laid(tmp_path / "empty", files | {first: b""}))
    with pytest.raises(BadData, match=rf"has no file {first} \(1 of 30 are missing\)"):
        pulled(name, laid(tmp_path / "missing", {key: files[key] for key in files if key != first}))
    with pytest.raises(BadData, match=r"metadata.csv has no column 'tumor'"):
        pulled(name, laid(tmp_path / "renamed", files | {"metadata.csv": b"patient,node\n1,2\n"}))
    with pytest.raises(FarshiftError, match=r"no file metadata.csv: the files are b.txt, readme/a.txt"):
        pulled(name, laid(tmp_path / "other", {"readme/a.txt": b"x", "b.txt": b"y"}))
    assert not list((tmp_path / "home").rglob("*.toml"))


def iwildcam():
    files, rows = {}, []
    for number, part in enumerate(["train", "val", "test", "id_val", "id_test"] * 4):
        position = {"val": 5, "test": 6}.get(part, number % 3)
        files[f"train/{number:03d}.jpg"] = picture(number)
        time = f"2013-05-{1 + number:02d} 12:00:00.000000"
        rows.append((part, f"{number:03d}.jpg", number % 2, position, number, time))
    return files | {"metadata.csv": csv("split,filename,y,location_remapped,sequence_remapped,datetime", rows)}


def test_iwildcam_has_its_parts_in_the_table_and_all_pictures_in_one_folder(place, tmp_path):
    split, parts = pulled(twin("wilds_iwildcam/official", place), laid(tmp_path / "data/iwildcam_v2.0", iwildcam()))
    assert parts == {"train": 4, "id_val": 4, "id_test": 4, "ood_val": 4, "ood_test": 4}
    assert set(values(split, "ood_test", "location")) == {"6"}


def fmow():
    files, rows = {}, []
    originals = ("train", "val", "test", "seq")
    for number in range(40):
        year = (2009, 2012, 2014, 2016, 2017)[number // 4 % 5]
        files[f"images/rgb_img_{number}.png"] = picture(number)
        country = ("FRA", "KEN", "XXX")[number % 3]
        rows.append((originals[number % 4], f"{year}-02-03T10:11:12Z", country, ("airport", "zoo")[number // 20]))
    files["rgb_metadata.csv"] = csv("split,timestamp,country_code,category", rows)
    files["country_code_mapping.csv"] = csv("alpha-3,region", [("FRA", "Europe"), ("KEN", "Africa")])
    return files


def test_fmow_trains_before_2013_and_tests_from_2016_on_the_original_test_rows(place, tmp_path):
    split, parts = pulled(twin("wilds_fmow/official", place), laid(tmp_path / "data/fmow_v1.1", fmow()))
    assert parts == {"train": 4, "id_val": 4, "id_test": 4, "ood_val": 2, "ood_test": 4}
    assert set(values(split, "train", "year")) == {"2009", "2012"}
    assert set(values(split, "ood_val", "year")) == {"2014"}
    assert set(values(split, "ood_test", "year")) == {"2016", "2017"}
    assert set(values(split, "ood_test", "use")) == {0, 61}
    regions = [value for part in parts for value in values(split, part, "region")]
    assert set(regions) == {"Africa", "Europe", "Other"}


COUNTRIES = [
    "angola",
    "benin",
    "burkina_faso",
    "cameroon",
    "cote_d_ivoire",
    "democratic_republic_of_congo",
    "ethiopia",
    "ghana",
    "guinea",
    "kenya",
    "lesotho",
    "malawi",
    "mali",
    "mozambique",
    "nigeria",
    "rwanda",
    "senegal",
    "sierra_leone",
    "tanzania",
    "togo",
    "uganda",
    "zambia",
    "zimbabwe",
]


def poverty(rows=69):
    files, table = {}, []
    for number in range(rows):
        buffer = io.BytesIO()
        np.savez(buffer, x=np.full((2, 3, 3), number / 8, np.float32))
        files[f"images/landsat_poverty_img_{number}.npz"] = buffer.getvalue()
        table.append((COUNTRIES[number % 23], number % 2 == 0, number / 100))
    return files | {"dhs_metadata.csv": csv("country,urban,wealthpooled", table)}


def test_poverty_repeats_the_published_draw_of_each_fold(place, tmp_path):
    small = {"options": {"shape": [2, 3, 3], "id_rows": 10}, "types": {"image": "float32[2,3,3]"}}
    data = laid(tmp_path / "data/poverty_v1.1", poverty())
    split, parts = pulled(twin("wilds_poverty/official", place, **small), data)
    assert parts == {"train": 29, "id_val": 5, "id_test": 5, "ood_val": 15, "ood_test": 15}
    assert set(values(split, "ood_test", "country")) == {"angola", "cote_d_ivoire", "ethiopia", "mali", "rwanda"}
    # As WILDS draws: NumPy's generator of the letter and a constant, over the places of the fold's own rows.
    locked = {"angola", "cote_d_ivoire", "ethiopia", "mali", "rwanda"}
    locked |= {"benin", "burkina_faso", "guinea", "sierra_leone", "tanzania"}
    known = np.array([row for row in range(69) if COUNTRIES[row % 23] not in locked])
    np.random.default_rng(ord("A") + 541433).shuffle(known)
    assert np.allclose(values(split, "id_val", "wealth"), sorted(known[:5] / 100))
    assert np.allclose(values(split, "id_test", "wealth"), sorted(known[5:10] / 100))
    assert set(values(split, "train", "urban")) == {"rural", "urban"}


def test_every_fold_of_poverty_tests_other_countries(place, tmp_path):
    small = {"options": {"shape": [2, 3, 3], "id_rows": 10}, "types": {"image": "float32[2,3,3]"}}
    data = laid(tmp_path / "data/poverty_v1.1", poverty())
    tested = []
    for fold in ("official", "fold_b", "fold_c", "fold_d", "fold_e"):
        split, _ = pulled(twin(f"wilds_poverty/{fold}", place, **small), data)
        tested += sorted(set(values(split, "ood_test", "country")))
    assert sorted(tested) == COUNTRIES


def rxrx1():
    files, rows = {}, []
    for part, experiment in (("train", "HEPG2-01"), ("train", "U2OS-01"), ("val", "RPE-05"), ("test", "HUVEC-17")):
        for site in (1, 2):
            for well in ("B02", "B03", "C04"):
                name = f"images/{experiment}/Plate1/{well}_s{site}.png"
                files[name] = picture(len(files))
                rows.append((part, experiment, 1, well, site, experiment.split("-")[0], len(rows) % 3))
    return files | {"metadata.csv": csv("dataset,experiment,plate,well,site,cell_type,sirna_id", rows)}


def test_rxrx1_tests_in_distribution_on_the_second_site(place, tmp_path, monkeypatch):
    monkeypatch.setenv("FARSHIFT_ACCEPT", "CC BY-NC-SA 4.0")
    split, parts = pulled(twin("wilds_rxrx1/official", place), laid(tmp_path / "data/rxrx1_v1.0", rxrx1()))
    assert parts == {"train": 6, "id_test": 6, "ood_val": 6, "ood_test": 6}
    assert set(values(split, "id_test", "site")) == {"2"}
    assert set(values(split, "train", "batch")) == {"HEPG2-01", "U2OS-01"}


def globalwheat():
    files = {"metadata_domain.csv": csv("name,country,location,development_stage", WHEAT, ";")}
    tables = (("official_train", 0), ("official_val", 12), ("official_test", 46))
    tables += (("fixed_train_val", 0), ("fixed_train_test", 1))
    for table, session in tables:
        rows = []
        for number in range(3):
            name = f"{table}{number}.png"
            files[f"images/{name}"] = picture(len(files))
            rows.append((name, "no_box" if number == 2 else f"1 2 {number + 5} 9;3 3 4 4", session))
        files[f"{table}.csv"] = csv("image_name,BoxesString,domain", rows)
    return files


WHEAT = [
    ("Arvalis_1", "France", "Gréoux", "Filling"),
    ("Arvalis_2", "France", "Gréoux", "Filling"),
    ("ETHZ_1", "Switzerland", "Eschikon", "Filling"),
    ("Usask_1", "Canada", "Saskatchewan", "Filling-Ripening"),
]


def test_globalwheat_has_a_table_for_each_part_and_boxes_as_text(place, tmp_path):
    data = laid(tmp_path / "data/globalwheat_v1.1", globalwheat())
    split, parts = pulled(twin("wilds_globalwheat/official", place), data)
    assert parts == {"train": 3, "id_val": 3, "id_test": 3, "ood_val": 3, "ood_test": 3}
    assert values(split, "ood_test", "boxes") == ["", "1 2 5 9;3 3 4 4", "1 2 6 9;3 3 4 4"]
    assert set(values(split, "ood_test", "session")) == {"Usask_1"}
    assert set(values(split, "ood_val", "country")) == {"Switzerland"}


def civilcomments():
    names = "male,female,LGBTQ,christian,muslim,other_religions,black,white"
    rows = []
    for number, part in enumerate(["train"] * 24 + ["val"] * 8 + ["test"] * 8):
        named = [0.0] * 8
        if number % 8 < 6:
            named[(0, 0, 0, 0, 1, 4)[number % 8]] = 0.5 + number % 2 / 2
        named[7] = 0.49
        rows.append((number, f'"He said ""no"", {number}"', [0.1, 0.5][number % 2], part, *named))
    return {"all_data_with_identities.csv": csv(f",comment_text,toxicity,split,{names}", rows)}


def test_civilcomments_counts_from_half_of_the_annotators_on(place, tmp_path):
    data = laid(tmp_path / "data/civilcomments_v1.0", civilcomments())
    split, parts = pulled(twin("wilds_civilcomments/official", place), data)
    assert parts == {"train": 24, "ood_val": 8, "ood_test": 8}
    assert values(split, "ood_test", "toxic") == [0] * 4 + [1] * 4
    assert values(split, "ood_test", "male") == [0] * 4 + [1] * 4
    assert values(split, "ood_test", "identity") == ["female"] + ["male"] * 4 + ["muslim"] + ["none"] * 2
    assert values(split, "train", "white") == [0] * 24
    assert 'He said "no", 3' in values(split, "train", "comment")


def amazon():
    head = "reviewerID,asin,overall,reviewText,summary,category,reviewYear"
    rows = []
    codes = [0, 0, 1, 2, 3, 4, -1] * 5
    for number, code in enumerate(codes):
        reviewer = {1: "V", 3: "T"}.get(code, "A") + str(number % 2)
        rows.append((f'"{reviewer}"', '"B1"', 1.0 + number % 5, f'"good, number {number}"', '"s"', '"Books"', 2014))
    return {"reviews.csv": csv(head, rows), "splits/user.csv": csv("split", [(code,) for code in codes])}


def test_amazon_joins_reviews_with_the_split_beside_them(place, tmp_path, monkeypatch):
    monkeypatch.setenv("FARSHIFT_ACCEPT", "Amazon reviews (research only)")
    data = laid(tmp_path / "data/amazon_v2.1", amazon())
    split, parts = pulled(twin("wilds_amazon/official", place), data)
    assert parts == {"train": 10, "id_val": 5, "id_test": 5, "ood_val": 5, "ood_test": 5}
    assert set(values(split, "ood_test", "reviewer")) == {"T0", "T1"}
    assert values(split, "ood_test", "stars") == [0, 1, 2, 3, 4]


def test_a_split_of_another_length_than_the_reviews_is_refused(place, tmp_path, monkeypatch):
    monkeypatch.setenv("FARSHIFT_ACCEPT", "Amazon reviews (research only)")
    files = amazon() | {"splits/user.csv": csv("split", [(0,), (3,)])}
    with pytest.raises(BadData, match=r"reviews.csv, line 4: published \(column 'part split'\) is missing"):
        pulled(twin("wilds_amazon/official", place), laid(tmp_path / "data", files))


def py150():
    files = {
        "metadata/repo_file_names/repo_ids.csv": csv("id,repo_name", [(0, "me/one"), (1, "me/two"), (2, "me/ood")])
    }
    for number, name in enumerate(("train", "IDval", "OODval", "IDtest", "OODtest")):
        repository = "me/ood" if name == "OODtest" else ("me/two" if name == "OODval" else "me/one")
        rows = range(3)
        tokens = [[10 + number, 20 + row, 30, 40, 1] for row in rows]
        files[f"processed/{name}_input.json"] = json.dumps(tokens).encode()
        files[f"processed/{name}_input_tok_type.json"] = json.dumps([[6, 0, 1, 2, -100] for _ in rows]).encode()
        paths = "".join(f"{repository}/src/{row}.py\n" for row in rows)
        files[f"metadata/repo_file_names/{name}.txt"] = paths.encode()
    return files


def test_py150_predicts_each_next_token_and_leaves_padding_out(place, tmp_path):
    split, parts = pulled(twin("wilds_py150/official", place), laid(tmp_path / "data/py150_v1.0", py150()))
    assert parts == {"train": 3, "id_val": 3, "id_test": 3, "ood_val": 3, "ood_test": 3}
    assert values(split, "ood_test", "code") == ["14 20 30", "14 21 30", "14 22 30"]
    assert values(split, "ood_test", "next_token") == ["20 30 40", "21 30 40", "22 30 40"]
    assert set(values(split, "ood_test", "types")) == {"class method punctuation"}
    assert set(values(split, "ood_test", "repository")) == {"me/ood"}


def molecules():
    head = "PCBA-1,PCBA-2,PCBA-3,mol_id,smiles"
    rows = [(row % 2, "" if row % 3 == 0 else 1, 0.0, f"CID{row}", "C" * (row + 1)) for row in range(10)]
    files = {"pcba/mapping/mol.csv.gz": gz(csv(head, rows))}
    for part, places in (("train", range(6)), ("valid", (6, 7)), ("test", (8, 9))):
        files[f"pcba/split/scaffold/{part}.csv.gz"] = gz("".join(f"{position}\n" for position in places).encode())
    return {"pcba.zip": zipped(files), "scaffold_group.npy": npy(np.arange(10) // 2)}


def test_molecules_have_an_assay_that_is_not_known_as_nan(place, tmp_path):
    name = twin("wilds_molpcba/official", place, options={"tasks": 3}, types={"assays": "float32[3]"})
    split, parts = pulled(name, laid(tmp_path / "data", molecules()))
    assert parts == {"train": 6, "ood_val": 2, "ood_test": 2}
    assays = split.part("ood_test").numpy(["assays"])["assays"]
    assert np.isnan(assays[:, 1]).sum() == 1
    assert set(values(split, "ood_test", "scaffold")) == {"4"}


def test_an_archive_comes_from_the_authors_place_on_the_hub(place, tmp_path):
    """In a process of its own, since the client reads where the Hub is when it is imported."""
    mirror = {"sort": "hub", "repo": REPOSITORY, "revision": "main", "file": "*.tar.gz"}
    name = twin("wilds_civilcomments/official", place, mirrors={"civilcomments_v1.0": [mirror]})
    with hub_serving() as hub:

        def pull():
            command = [sys.executable, "-m", "farshift", "splits", "pull", name]
            where = environment(hub, tmp_path / "hub")
            return subprocess.run(command, capture_output=True, text=True, env=where, timeout=120, check=False)

        hub.commit({"README.md": b"x", "a.tar.gz": b"1", "b.tar.gz": b"2"})
        assert "2 files match *.tar.gz instead of one" in " ".join(pull().stderr.split())
        hub.commit({"README.md": b"x", "civilcomments_v1.0.tar.gz": tar(civilcomments())})
        done = pull()
        assert done.returncode == 0, done.stderr
    assert len(load(name, part="train")) == 24
