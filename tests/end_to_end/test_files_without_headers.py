"""A file without a header line, read by the places of its columns: from the run to the released file."""

from schemas.columns import ColumnsRead

ROWS = (
    "001122,00012345,Avery Thornwood,100.00\n001122,00012345,Averi Thornwood,50.00\nx,,Rowan Blackmere,1.00\n"
)
MAPS = [
    f"--map={field}=#{at}" for at, field in enumerate(("sort_code", "account_number", "name", "amount"), 1)
]


def test_a_file_without_headers_is_asked_corrected_and_released_without_headers(desk, sandbox):
    (desk.folder / "payments.csv").write_text(ROWS)
    done = desk("run", "payments.csv", *MAPS, *sandbox.using("sandbox"))
    assert done.status == 0, done.err
    assert [row["check_outcome"] for row in desk.outcomes()] == ["match", "close_match", "rejected"]
    assert list(desk.outcomes()[0])[:4] == ["column_1", "column_2", "column_3", "column_4"]

    folder = desk.folder / "payments.precheck"
    fixed = desk(
        "fix", folder, "--accept", "close_match", "--reason", "the bank says so", "--allow-simulated"
    )
    assert fixed.status == 0, fixed.err
    [corrected] = folder.glob("corrected*.csv")
    assert corrected.read_text() == ROWS.replace("Averi", "Avery")

    split = desk("split", folder, "--allow-simulated", *sandbox.using("sandbox")[:2])
    assert split.status == 0, split.err
    assert (folder / "release.simulated.csv").read_text() == ROWS.splitlines(keepends=True)[0]
    assert (folder / "hold.simulated.csv").read_text() == "".join(ROWS.splitlines(keepends=True)[1:])
    assert desk("verify", folder).status == 0
    assert "Finished already" in desk("run", "payments.csv", *MAPS, *sandbox.using("sandbox")).err


def test_a_file_without_headers_says_how_to_name_its_columns(desk):
    (desk.folder / "payments.csv").write_text(ROWS)
    refused = desk("run", "payments.csv")
    assert refused.status == 65
    assert "line 1: this looks like a payment, not like headers" in refused.err
    assert "--map sort_code=#1 --map account_number=#2 --map name=#3 --map amount=#4" in refused.err
    assert not (desk.folder / "payments.precheck").exists()
    told = ColumnsRead.model_validate_json(desk("columns", "payments.csv", "--json").out)
    assert "this looks like a payment" in told.refusal
