"""Public tables, molecules, reviews and networks: each source's own definition read from small files as published."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadData
from farshift.loaders.acquire.source import find_source
from farshift.loaders.readers import read_tables
from scipy import io as io_
from scipy import sparse


def read_small(name: str, files: dict[str, str | bytes], folder: Path) -> pa.Table:
    """What the source's own distribution makes of these files, each of which it must name."""
    source = find_source(name)
    (distribution,) = source.definition.distributions
    assert {pin.name for pin in distribution.files} == set(files)
    for file, text in files.items():
        (folder / file).write_bytes(text.encode() if isinstance(text, str) else text)
    in_order = {pin.name: folder / pin.name for pin in distribution.files}
    tables = read_tables(distribution.reader, {"files": in_order, **distribution.options}, source.schema, name)
    full = pa.concat_tables(tables, promote_options="permissive")
    return source.schema.conform(full, name)


HEART = "63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0\n32,1,1,95,0,?,0,127,0,.7,1,?,?,3\n"
HUNGARY = "age,sex,cp,restbloodpressure,num\n28,1,2,130,132,0,2,185,0,0,?,?,?,0,\n"
WINE = '"fixed acidity";"volatile acidity";"citric acid";"residual sugar";"chlorides";"free sulfur dioxide";"total sulfur dioxide";"density";"pH";"sulphates";"alcohol";"quality"\n'
JOBS = "rownames,data_id,treat,age,educ,black,hisp,marr,nodegree,re74,re75,re78\n"
CRASH = "rownames,dvcat,weight,dead,airbag,seatbelt,frontal,sex,ageOFocc,yearacc,yearVeh,abcat,occRole,deploy,injSeverity,caseid\n"
AIR = '"No","year","month","day","hour","PM2.5","PM10","SO2","NO2","CO","O3","TEMP","PRES","DEWP","RAIN","wd","WSPM","station"\n'
STATIONS = (
    "Aotizhongxin",
    "Changping",
    "Dingling",
    "Dongsi",
    "Guanyuan",
    "Gucheng",
    "Huairou",
    "Nongzhanguan",
    "Shunyi",
    "Tiantan",
    "Wanliu",
    "Wanshouxigong",
)
LAYOUTS = {
    "beijing_air": (
        {
            f"PRSA_Data_{station}_20130301-20170228.csv": AIR + f'1,2013,3,1,0,76,7,3,2,100,91,-2.3,1020.3,-20.7,0,"WNW",3.1,"{station}"\n2,2017,3,1,1,75,4,3,4,100,92,-2.7,1020.8,-20.5,0,"N",2,"{station}"\n3,2013,3,1,2,4,4, ,NA,100,92,-2.7,1020.8,-20.5,0,NA,2,"{station}"\n'
            for station in STATIONS
        },
        {"dusty": [1, 0] * 12, "wind": [13, 0] * 12, "year": [2013, 2017] * 12, "dew_point": [-20.7, -20.5] * 12},
    ),
    "heart_disease": (
        {"processed.cleveland.data": HEART, "processed.hungarian.data": HUNGARY, "processed.switzerland.data": HEART, "processed.va.data": HEART},
        {"disease": [0, 1, 0, 0, 1, 0, 1], "vessels": [0, -9, -9, 0, -9, 0, -9], "hospital": ["Cleveland"] * 2 + ["Budapest"] + ["Switzerland"] * 2 + ["Long Beach"] * 2},
    ),
    "wine_quality": (
        {f"winequality-{colour}.csv": WINE + f"7.4;0.7;0;1.9;0.076;11;34;0.9978;3.51;0.56;9.4;{grade}\n" for colour, grade in (("red", 5), ("white", 6))},
        {"good": [0, 1], "grade": [5, 6], "colour": ["red", "white"], "ph": [3.51, 3.51]},
    ),
    "lalonde": (
        {"nsw_mixtape.csv": JOBS + "1,Dehejia-Wahba Sample,1,37,11,1,0,1,1,0,0,9930.04\n", "cps_mixtape.csv": JOBS + "1,CPS1,0,45,11,0,0,1,1,21516.6,25243.5,0\n"},
        {"employed": [1, 0], "sample": ["experiment", "survey"], "treated": [1, 0], "earnings_1974": [0, 21516.6]},
    ),
    "breast_cancer_recurrence": (
        {
            "rotterdam.csv": "rownames,pid,year,age,meno,size,grade,nodes,pgr,er,hormon,chemo,rtime,recur,dtime,death\n1,1,1992,74,1,<=20,3,0,35,291,0,0,1799,0,1799,0\n2,2,1984,79,1,20-50,3,0,36,611,0,0,300,0,300,0\n",
            "gbsg.csv": "rownames,pid,age,meno,size,grade,nodes,pgr,er,hormon,rfstime,status\n1,132,49,0,18,2,2,0,0,0,1095,1\n",
        },
        {"recurrence": [0, 1], "cohort": ["Rotterdam", "German trial"], "oestrogen": [291, 0]},
    ),
    "crash_deaths": (
        {"nassCDS.csv": CRASH + "1,25-39,25.06,alive,none,belted,1,f,26,1997,1990,unavail,driver,0,3,2:3:1\n2,1-9km/h,1,dead,airbag,none,0,m,72,2002,NA,deploy,pass,1,1,2:3:2\n3,55+,1,dead,airbag,none,0,m,72,2002,1999,deploy,pass,1,,2:3:2\n"},
        {"died": [0, 1], "speed": [2, 4], "year": [1997, 2002], "deployment": [2, 1], "female": [1, 0]},
    ),
    "electricity": (
        {"elec.csv": "period,nswprice,nswdemand,vicprice,vicdemand,transfer,class\n0.0,0.056,0.4,0.003,0.42,0.41,1\n0.02,0.05,0.41,0.003,0.42,0.41,0\n"},
        {"up": [1, 0], "half_hour": [0, 1], "price": [0.056, 0.05]},
    ),
    "weather": (
        {"weather.csv": "feat_1,feat_2,feat_3,feat_4,feat_5,feat_6,feat_7,feat_8,target\n19.8,14.0,1019.6,8.4,9.9,15.9,28.9,14.0,0\n26.8,22.2,1006.2,8.1,10.9,19.0,34.0,21.0,1\n"},
        {"rain": [0, 1], "day": [0, 1], "dew_point": [14.0, 22.2]},
    ),
    "bike_sharing": (
        {"hour.csv": "instant,dteday,season,yr,mnth,hr,holiday,weekday,workingday,weathersit,temp,atemp,hum,windspeed,casual,registered,cnt\n1,1/1/11,1,0,1,0,0,6,0,1,0.24,0.2879,0.81,0,3,139,142\n2,1/1/12,1,1,1,1,0,6,0,1,0.22,0.2727,0.8,0,8,135,143\n"},
        {"busy": [0, 1], "rentals": [142, 143], "hour_number": [1, 2], "second_year": [0, 1]},
    ),
    "transformer_temperature": (
        {f"ETTh{which}.csv": f"date,HUFL,HULL,MUFL,MULL,LUFL,LULL,OT\n2016-07-01 00:00:00,5.8,2.0,1.6,0.5,4.2,1.3,{which}0.5\n" for which in (1, 2)},
        {"oil_temperature": [10.5, 20.5], "hour": [0, 0], "transformer": ["transformer 1", "transformer 2"]},
    ),
}  # fmt: skip
"""By source: files in its published layout, and some of the fields that they give."""


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "complaint"),
    [
        ("heart_disease", "processed.va.data", "95", "high", "'high'"),
        ("wine_quality", "winequality-red.csv", "quality", "grade", "quality"),
        ("electricity", "elec.csv", ",1\n", ",UP\n", "UP"),
        ("crash_deaths", "nassCDS.csv", "alive", "unhurt", "unhurt"),
    ],
)
def test_a_file_that_is_not_as_published_is_refused_with_the_value(name, file, old, new, complaint, tmp_path):
    files = LAYOUTS[name][0]
    with pytest.raises(BadData, match=complaint):
        read_small(name, files | {file: files[file].replace(old, new, 1)}, tmp_path)


def encounters(**changes):
    """The archive of the hospitals' table, with one encounter."""
    source = find_source("diabetes_hospitals").definition.distributions[0]
    columns = dict.fromkeys(source.options["columns"].values(), "1")
    maps = source.options["maps"]
    known = {column: maps[field] for field, column in source.options["columns"].items() if field in maps}
    row = columns | {column: next(iter(values)) for column, values in known.items()} | changes
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("dataset_diabetes/diabetic_data.csv", ",".join(row) + "\n" + ",".join(row.values()) + "\n")
        archive.writestr("dataset_diabetes/IDs_mapping.csv", "admission_type_id,description\n")
    return {"dataset_diabetes.zip": content.getvalue()}


def test_an_encounter_of_a_hospital_is_read_from_its_archive(tmp_path):
    files = encounters(readmitted="<30", age="[70-80)", admission_source_id="7", diag_1="250.83", payer_code="MC")
    result = read_small("diabetes_hospitals", files, tmp_path).to_pylist()[0]
    assert (result["readmitted"], result["age"], result["diagnosis_1"]) == (1, 75.0, "250.83")
    assert (result["admission_source"], result["payer_code"]) == ("Emergency Room", "MC")
    with pytest.raises(BadData, match="sometimes"):
        read_small("diabetes_hospitals", encounters(readmitted="sometimes"), tmp_path)


def matlab(**matrices) -> bytes:
    """A .mat file of version 5, the network sparse as published."""
    buffer = io.BytesIO()
    io_.savemat(buffer, matrices | {"network": sparse.csc_matrix(matrices["network"])}, do_compression=True)
    return buffer.getvalue()


FLIGHTS = {"edgelist": "1 2\n2 3\n", "labels": "node label\n1 0\n2 3\n3 1\n"}
TWITCH = {"_edges.csv": "from,to\n0,1\n", ".json": json.dumps({"0": [1], "1": []}), "_target.csv": "id,days,mature,views,partner,new_id\n7,1,True,9,False,1\n8,1,False,9,False,0\n"}  # fmt: skip
LAYOUTS |= {
    "citations": (
        {f"{name}.mat": matlab(network=np.array([[0, 1.0], [1.0, 0]]), attrb=np.array([[0, 2, 1], [0, 0, 0]], np.uint8), group=np.array([[1, 0, 0, 0, 1], [0, 1, 0, 0, 0]], np.uint8)) for name in ("acmv9", "citationv1", "dblpv7")},
        {"features": ["f1 f2", ""] * 3, "neighbours": ["", "f1 f2"] * 3, "subjects": [[1, 0, 0, 0, 1], [0, 1, 0, 0, 0]] * 3, "degree": [1, 1] * 3},
    ),
    "airports": (
        {name: FLIGHTS[sort] for position in ("brazil", "europe", "usa") for name, sort in ((f"{position}-airports.edgelist", "edgelist"), (f"labels-{position}-airports.txt", "labels"))},
        {"activity": [0, 3, 1] * 3, "degree": [1, 2, 1] * 3, "network": ["Brazil"] * 3 + ["Europe"] * 3 + ["United States"] * 3},
    ),
    "twitch": (
        {language + end: text for language in ("DE", "ENGB", "ES", "FR", "PTBR", "RU", "ZHTW") for end, text in TWITCH.items()},
        {"mature": [0, 1] * 7, "features": ["f1", ""] * 7, "neighbours": ["", "f1"] * 7},
    ),
    "citations_graphs": (
        {f"{name}.mat": matlab(network=np.array([[0, 1.0], [1.0, 0]]), attrb=np.array([[0, 2, 1], [0, 0, 0]], np.uint8), group=np.array([[1, 0, 0, 0, 1], [0, 1, 0, 0, 0]], np.uint8)) for name in ("acmv9", "citationv1", "dblpv7")},
        {"graph": [". 1,2;0-1"] * 3, "features": [""] * 3, "subject": [1] * 3},
    ),
    "twitch_graphs": (
        {language + end: text for language in ("DE", "ENGB", "ES", "FR", "PTBR", "RU", "ZHTW") for end, text in TWITCH.items()},
        {"mature": [0, 1] * 7, "features": ["f1", ""] * 7, "graph": ["1 .;0-1", ". 1;0-1"] * 7},
    ),
    "bbbp": ({"bbbp.csv": "smiles,p_np\nCCO,1\nC,0\n"}, {"smiles": ["CCO", "C"], "penetrates": [1, 0]}),
    "bace": ({"bace.csv": "mol,Class\nCCO,1\nC,0\n"}, {"smiles": ["CCO", "C"], "inhibits": [1, 0]}),
    "clintox": ({"clintox.csv": "smiles,FDA_APPROVED,CT_TOX\nCCO,1,0\nC,0,1\n"}, {"smiles": ["CCO", "C"], "toxic": [0, 1]}),
    "tox21_ahr": ({"tox21.csv": "smiles,NR-AR,NR-AhR\nCCO,1,\nC,,1\n"}, {"smiles": ["C"], "active": [1]}),
    "tox21_mmp": ({"tox21.csv": "smiles,SR-MMP\nCCO,0\nC,\n"}, {"smiles": ["CCO"], "active": [0]}),
    "sider_hepatobiliary": ({"sider.csv": 'smiles,Hepatobiliary disorders,"Neoplasms benign, malignant"\nCCO,1,0\n'}, {"adverse": [1]}),
    "esol": ({"delaney.csv": "smiles,logp\nCCO,-0.77\n"}, {"log_solubility": [-0.77]}),
    "freesolv": ({"freesolv.csv": "smiles,freesolv\nCCO,-11.01\n"}, {"hydration_energy": [-11.01]}),
    "lipophilicity": ({"lipo.csv": "smiles,lipo\nCCO,3.54\n"}, {"log_d": [3.54]}),
    "amazon_sentiment": (
        {f"{kind}_{part}.svmlight": "1 0:2 9:1\n-1 3:1\n" for kind in ("books", "dvd", "electronics", "kitchen") for part in ("train", "test")},
        {"positive": [1, 0] * 8, "terms": ["t0 t0 t9", "t3"] * 8},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_the_published_layout_gives_the_fields_of_the_source(name, tmp_path):
    files, some = LAYOUTS[name]
    result = read_small(name, files, tmp_path).select(list(some)).to_pydict()
    assert result == {
        field: pytest.approx(values) if isinstance(values[0], float) else values for field, values in some.items()
    }


def test_a_molecule_of_neither_class_is_refused(tmp_path):
    with pytest.raises(BadData, match="2"):
        read_small("bbbp", {"bbbp.csv": "smiles,p_np\nCCO,2\n"}, tmp_path)


def test_a_sparse_network_is_not_spread_out_in_memory(tmp_path):
    nodes = 2_000
    network = sparse.eye(nodes, format="csc")
    sparse_one = matlab(network=network, attrb=network, group=np.ones((nodes, 5)))
    tracemalloc.start()
    try:
        rows = read_small("citations", dict.fromkeys(LAYOUTS["citations"][0], sparse_one), tmp_path)
        assert tracemalloc.get_traced_memory()[1] < nodes * nodes * 8 / 2
    finally:
        tracemalloc.stop()
    assert rows.num_rows == 3 * nodes
