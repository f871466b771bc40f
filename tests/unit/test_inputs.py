"""`[inputs.NAME]` of the configuration: how the files of a name are read, without an option."""

import tomllib

import pytest
from refusals import refused, says

from pipeline.config import ConfigurationFile
from pipeline.config.inputs import ReadAs
from pipeline.errors import ConfigurationError, PrecheckError
from pipeline.jobs.columns import columns_of
from pipeline.jobs.prepare import as_configured, read_file
from pipeline.runs.request import CheckJob
from pipeline.wording import Sentence

IBAN = "DE62370400440532013001"
TEXT = f"Wer;Wohin;Was\nŁukasz Żółw;{IBAN};10,00\nMałgorzata Dąbek;{IBAN};20,00\n"
NOTHING = ReadAs()
PAYROLL = """\
[inputs.payroll]
match = "payroll-*.csv"
map = { name = "Wer", iban = "Wohin", amount = "Was" }
encoding = "cp1250"
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "payroll-11.csv"
    path.write_bytes(TEXT.encode("cp1250"))
    return path


@pytest.fixture
def config(tmp_path):
    def written(text):
        path = tmp_path / "precheck.toml"
        path.write_text(text, "utf-8")
        return path

    return written


def names(job):
    file = ConfigurationFile(job.config)
    return read_file(as_configured(job, file), file).payments["name"].to_list()


def test_a_file_of_the_name_is_read_as_its_section_says_and_no_other(file, config, tmp_path):
    path = config(PAYROLL)
    job = CheckJob(file, tmp_path / "out", config=path)
    assert names(job) == ["Łukasz Żółw", "Małgorzata Dąbek"]
    read, refusal = columns_of(file, NOTHING, path)
    assert refusal is None
    assert [column.field for column in read.columns] == ["name", "iban", "amount"]
    other = file.rename(tmp_path / "other.csv")
    with pytest.raises(PrecheckError):
        names(CheckJob(other, tmp_path / "out", config=path))


def test_an_option_goes_before_the_section(file, config, tmp_path):
    path = config(PAYROLL)
    job = CheckJob(file, tmp_path / "out", config=path, encoding="iso-8859-2", mapping={"name": "Was"})
    assert names(job) == ["10,00", "20,00"]
    said = as_configured(job, ConfigurationFile(path))
    assert said.mapping == {"name": "Was", "iban": "Wohin"}
    assert said.encoding == "iso-8859-2"


def test_what_columns_prints_reads_the_file_the_same_way(file, config, tmp_path):
    given = ReadAs({"name": "Wer", "iban": "Wohin"}, "cp1250")
    read, _ = columns_of(file, given)
    section = tomllib.loads(read.section)["inputs"]["payroll-11"]
    assert section == {
        "match": "payroll-11.csv",
        "map": {"name": "Wer", "iban": "Wohin"},
        "encoding": "cp1250",
    }
    path = config(read.section)
    assert names(CheckJob(file, tmp_path / "out", config=path)) == ["Łukasz Żółw", "Małgorzata Dąbek"]


def test_a_sort_code_that_is_known_by_the_word_beside_it_is_in_the_section(tmp_path, config):
    path = tmp_path / "pay.csv"
    path.write_text(
        "Service User,Provider Name,Provider Sort Code,Provider Account\nA B,Ada Quillon,001122,00012345\n"
    )
    pasted, _ = columns_of(path, ReadAs(), config(columns_of(path, ReadAs())[0].section))
    fields = [column.field for column in pasted.columns]
    assert fields == [None, "name", "sort_code", "account_number"]


def test_columns_with_odd_headers_are_named_by_their_places(tmp_path):
    path = tmp_path / "pay [1].csv"
    path.write_text(f"Name,IBAN+\nAda,{IBAN}\n")
    read, refusal = columns_of(path, ReadAs())
    assert refusal is None
    [section] = tomllib.loads(read.section)["inputs"].values()
    assert section["match"] == "pay [[]1].csv"
    assert section["map"] == {"name": "Name", "iban": "#2"}


def at(key, what):
    return Sentence("config.at", where=f"inputs.a.{key}", what=what)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[inputs.a]\nmatch = "pay*"\n[inputs.b]\nmatch = "*.csv"\n',
            Sentence("config.two_inputs_match_file", sections=["a", "b"]),
        ),
        ('[inputs.a]\nmatch = "*"\nmap = { names = "x" }\n', at("map.names", "config.no_such_field")),
        ('[inputs.a]\nmatch = "*"\nencoding = "klingon"\n', at("encoding", "csv.encoding_not_supported")),
        ('[inputs.a]\nmatch = "*"\ncountry = "UK"\n', at("country", "config.not_a_country_code")),
        ('[inputs.a]\nmatch = "*"\nencodings = "cp1250"\n', Sentence("config.did_you_mean", near="encoding")),
        ('[inputs.a]\nmap = { name = "x" }\n', at("match", "config.missing")),
    ],
)
def test_a_mistake_in_a_section_is_told(file, config, text, said):
    with refused(ConfigurationError, said):
        columns_of(file, NOTHING, config(text))


def test_a_printed_section_says_of_no_account_that_it_is_british(tmp_path):
    (path := tmp_path / "pay.csv").write_text(
        "Payee,Sort code,Account number,Currency\nAda Quillon,200415,31926819,INR\n", "utf-8"
    )
    section = tomllib.loads(columns_of(path, ReadAs())[0].section)["inputs"]["pay"]
    assert section["map"] == {"account_number": "Account number", "currency": "Currency", "name": "Payee"}
    insisting = columns_of(path, ReadAs({"sort_code": "Sort code"}))[0].section
    assert tomllib.loads(insisting)["inputs"]["pay"]["map"]["sort_code"] == "Sort code"


def test_a_section_has_no_statement_read_and_an_option_has(config, tmp_path):
    path, file = tmp_path / "pay.csv", f"Payee,IBAN,Amount,Balance\nAda Quillon,{IBAN},10.00,"
    path.write_text(f"{file}\n", "utf-8")
    section = config(columns_of(path, NOTHING)[0].section)
    path.write_text(f"{file}90.00\n", "utf-8")
    refusal = columns_of(path, NOTHING, section)[1]
    assert refusal is not None
    says(refusal, "headers.bank_statement")
    assert columns_of(path, ReadAs({"name": "Payee"}), section)[1] is None
