"""Files that come compressed, and layouts of the user's own: what a run recorded, later commands go by."""

import gzip
import io
import json
import zipfile

import pytest
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

SIMULATED = ("--allow-simulated", "--by", "Mara Ellery")
TABLE = (
    "payment_id,name,account_type,sort_code,account_number,amount,currency\n"
    "P1,Imogen Farraday,Personal,200415,31926819,2610.75,GBP\n"
    "P2,Averi Thornwood,Personal,001122,00012345,120.50,GBP\n"
)
NORTHGATE = (
    "P;200415;31926819;Imogen Farraday;2610.75\nP;001122;00012345;Averi Thornwood;120.50\nT;2;2731.25\n"
)
LAYOUT = """
[layouts.northgate]
separator = ";"
[[layouts.northgate.payments]]
tags = { 1 = "P" }
columns = { sort_code = 2, account_number = 3, name = 4, amount = 5 }
currency = "GBP"
[layouts.northgate.trailer]
tags = { 1 = "T" }
count = 2
sum = 3
"""


def zipped(text, member="pay.csv"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, text)
    return file.getvalue()


def unzipped(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        [member] = archive.namelist()
        return member, archive.read(member)


@pytest.mark.parametrize(
    ("name", "packed", "unpacked", "folder"),
    [
        pytest.param(
            "pay.csv.gz",
            gzip.compress(TABLE.encode(), mtime=0),
            lambda data: (None, gzip.decompress(data)),
            "pay.csv.precheck",
            id="gzip",
            marks=pytest.mark.nightly,
        ),
        pytest.param("pay.zip", zipped(TABLE), unzipped, "pay.precheck", id="zip"),
    ],
)
def test_a_compressed_file_goes_the_whole_road_and_is_written_back_as_it_came(
    desk, name, packed, unpacked, folder
):
    (desk.folder / name).write_bytes(packed)
    ran = desk("run", name, "--quiet")
    assert ran.status == 0, ran.err
    made = desk.folder / folder
    file = json.loads((made / "summary.json").read_text())["input"]
    assert (file["format"], file["unpacked_name"], file["byte_count"]) == ("csv", "pay.csv", len(packed))
    assert [row["check_outcome"] for row in desk.outcomes(folder)] == ["match", "close_match"]
    assert desk("verify", folder, "--input", name).status == 0
    again = desk("run", name, "--quiet", "--json")
    assert sum(call["request_count"] for call in json.loads(again.out)["calls"]) == 0

    fixed = desk("fix", folder, "--accept", "close_match", "--reason", "agreed", *SIMULATED)
    assert fixed.status == 0, fixed.err
    suffix = f".csv{name[-4:] if name.endswith('.zip') else '.gz'}"
    member, text = unpacked((made / f"corrected.simulated{suffix}").read_bytes())
    assert text.decode() == TABLE.replace("Averi", "Avery")
    assert member in {None, "corrected.simulated.csv"}
    assert desk("split", folder, *SIMULATED[:1]).status == 0
    lines = TABLE.splitlines(keepends=True)
    for part, row in (("release", 1), ("hold", 2)):
        _, text = unpacked((made / f"{part}.simulated{suffix}").read_bytes())
        assert text.decode() == lines[0] + lines[row]
    assert desk("run", f"{folder}/corrected.simulated{suffix}", "--quiet").status == 0


def test_a_folder_keeps_the_layout_that_its_file_was_read_by(desk):
    configuration = desk.file("precheck.toml", LAYOUT)
    desk.file("pay.txt", NORTHGATE)
    columns = json.loads(desk("columns", "pay.txt", "--json").out)
    assert {column["field"]: column["header"] for column in columns["columns"]}["name"] == "cell 4"
    forecast = json.loads(desk("plan", "pay.txt", "--json").out)
    assert (forecast["row_count"], forecast["accepted_count"]) == (2, 2)
    assert desk("run", "pay.txt", "--quiet").status == 0
    file = json.loads((desk.folder / "pay.precheck" / "summary.json").read_text())["input"]
    assert (file["format"], file["layout"]["separator"], file["format_said"]) == ("northgate", ";", False)

    configuration.write_text(LAYOUT.replace("name = 4", "name = 4, reference = 4"))
    assert desk("verify", "pay.precheck", "--input", "pay.txt").status == 0
    configuration.unlink()
    assert desk("verify", "pay.precheck", "--input", "pay.txt").status == 0
    assert desk("show", "pay.precheck", "--row", "2").status == 0
    gone = desk("run", "pay.txt", "--quiet")
    assert gone.status == 65
    assert "pay.precheck" in gone.err
    assert "[layouts.northgate]" in gone.err


def test_an_own_layout_named_by_config_goes_where_no_configuration_is(desk, sandbox):
    configuration = desk.file("mine.toml", LAYOUT)
    desk.file("pay.txt", NORTHGATE)
    assert desk("columns", "pay.txt").status == 65
    assert desk("columns", "pay.txt", "--config", configuration).status == 0
    refused = desk("columns", "pay.txt", "--config", configuration, "--input-format", "southgate")
    assert refused.status == 2
    assert "csv, parquet, excel, pain001, bacs18" in refused.err
    described = said("formats.describe_as_layout", choice="southgate")
    assert f"northgate{said('advice.choose_format')}, or {described}" in refused.err


def test_a_file_of_two_layouts_waits_for_the_name_of_one(desk):
    twin = LAYOUT + LAYOUT.replace("northgate", "eastgate")
    desk.file("precheck.toml", twin)
    desk.file("pay.txt", NORTHGATE)
    refused = desk("run", "pay.txt", "--quiet")
    assert refused.status == 65
    could_be = said("formats.could_be_several", where="pay.txt", names=["northgate", "eastgate"])
    choose = said("advice.choose_format", choices="northgate, eastgate")
    assert refused.sentences == [f"precheck: {could_be}; {choose}"]
    assert desk("run", "pay.txt", "--input-format", "eastgate", "--quiet").status == 0
    file = json.loads((desk.folder / "pay.precheck" / "summary.json").read_text())["input"]
    assert (file["format"], file["format_said"]) == ("eastgate", True)
    assert desk("verify", "pay.precheck", "--input", "pay.txt").status == 0
