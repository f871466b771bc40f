"""Options that several commands have, and how their values are parsed."""

import getpass
import os
import re
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import click

from pipeline.errors import UsageError
from pipeline.wording import Sentence

Made = TypeVar("Made")


class NamedPath(click.Path):
    """A path that is not empty: an empty one would be the working folder."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:  # noqa: ANN401 (click's own signature)
        """Read it."""
        if value == "":
            is_option = isinstance(param, click.Option)
            what_to_do = "give one, or leave the option out" if is_option else "give one"
            self.fail(f"the name is empty; {what_to_do}", param, ctx)
        return super().convert(value, param, ctx)


PATH = NamedPath(path_type=Path, readable=False)
"""Whether a path can be used is checked, and reported, where it is used."""


class OutcomeFormats(click.Choice[str]):
    """The formats in which outcomes are written; their table is imported once a format is named or listed."""

    def __init__(self) -> None:
        self.case_sensitive = True

    def __getattr__(self, name: str) -> tuple[str, ...]:
        """Their names, as `choices`."""
        if name != "choices":
            raise AttributeError(name)
        from pipeline.formats import NAMES

        return NAMES


class Days(click.ParamType[timedelta]):
    """A number of days, written as 30d."""

    name = "days"

    def convert(
        self, value: str | timedelta, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Read it."""
        if isinstance(value, timedelta):
            return value
        if not re.fullmatch("[0-9]{1,5}d", value):
            self.fail(f"{value!r} is not a number of days such as 30d", param, ctx)
        return timedelta(days=int(value.removesuffix("d")))


class Duration(click.ParamType[timedelta]):
    """A duration, written as 90s, 30m or 2h."""

    name = "duration"

    def convert(
        self, value: str | timedelta, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Read it."""
        if isinstance(value, timedelta):
            return value
        if not re.fullmatch("[0-9]{1,5}[smh]", value):
            self.fail(f"{value!r} is not a time such as 90s, 30m or 2h", param, ctx)
        return timedelta(**{_UNITS[value[-1]]: int(value[:-1])})


class ListenAddress(NamedTuple):
    """Where to listen."""

    host: str
    port: int


class Listen(click.ParamType[ListenAddress]):
    """An address and a port, written as 127.0.0.1:9464 or [::1]:9464."""

    name = "address"

    def convert(
        self,
        value: str | ListenAddress,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> ListenAddress:
        """Read it."""
        if isinstance(value, ListenAddress):
            return value
        parts = re.fullmatch(r"(\[[0-9a-f:.]+\]|[0-9.]+):([0-9]{1,5})", value, re.IGNORECASE)
        if parts is None or not 0 < int(parts[2]) < 2**16:
            self.fail(f"{value!r} is not an address and a port such as 127.0.0.1:9464", param, ctx)
        return ListenAddress(parts[1].strip("[]"), int(parts[2]))


_UNITS = {"s": "seconds", "m": "minutes", "h": "hours"}


profile_options: list[Callable[..., Any]] = [
    click.option(
        "--profile",
        metavar="NAME",
        help="Which profile of the configuration to use. Without it, a sandbox is started that gives "
        "simulated answers; sandbox-standard does so for VoP Standard.",
    ),
    click.option("--config", type=PATH, metavar="FILE", help="The configuration file."),
]
ledger_options: list[Callable[..., Any]] = [
    click.option("--profile", required=True, metavar="NAME", help="The profile that names the ledger."),
    profile_options[1],
]
input_options: list[Callable[..., Any]] = [
    click.option(
        "--map",
        "mapping",
        multiple=True,
        metavar="FIELD=HEADER",
        help="Read the column HEADER as FIELD, such as --map name=Beneficiary; with ignore as FIELD, do not "
        "read it. May be repeated.",
    ),
    click.option(
        "--input-format",
        metavar="NAME",
        help="The format of FILE, where it is not to be found out: one that `precheck formats` lists.",
    ),
    click.option("--encoding", metavar="NAME", help="Of a CSV file that is not UTF-8, such as cp1252."),
    click.option(
        "--sheet", metavar="NAME", help="Of a workbook; default: the only visible sheet that has data."
    ),
]
log_option = click.option(
    "--log",
    "log_form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="On standard error, text for a person or a JSON document a line.",
)
pain002_option = click.option(
    "--pain002", is_flag=True, help="Of a pain.001, write also the report that bank software reads."
)
order_option = click.option(
    "--order",
    type=click.Choice(["file", "amount"]),
    default="file",
    show_default=True,
    help="What to ask first: in file order, or the largest payments.",
)
reuse_options: list[Callable[..., Any]] = [
    click.option(
        "--reuse-from",
        multiple=True,
        type=PATH,
        metavar="DIR",
        help="Use the matches of an earlier run in DIR again instead of asking. May be repeated.",
    ),
    click.option(
        "--reuse-max-age",
        type=Days(),
        default="30d",
        show_default=True,
        metavar="DAYS",
        help="How old an answer of --reuse-from may be; given alone, with a shared ledger: use the matches "
        "of all its runs again.",
    ),
]
data_set_options: list[Callable[..., Any]] = [
    click.option(
        "--work",
        type=PATH,
        metavar="DIR",
        help="With a ledger that is shared, leave the questions in DIR, where `precheck worker` finds them. "
        "Where FILE is a data set (a folder of CSV or Parquet parts, or one Parquet file with --engine), all "
        "that lies between its parts and their outcomes goes there. Removed once all is decided.",
    ),
    click.option(
        "--engine",
        type=click.Choice(["pool", "dask"]),
        help="Of a data set, who works on its parts: the processes of this machine (the default) or Dask.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Of --engine dask, its scheduler, such as tcp://host:8786; default: a cluster of this machine.",
    ),
    click.option(
        "--no-ask",
        is_flag=True,
        help="Of a data set, ask nothing here: `precheck worker` does, and the same command then writes on.",
    ),
]
compare_option = click.option(
    "--compare-with",
    multiple=True,
    type=PATH,
    metavar="DIR",
    help="Warn of payees who are new, or to be paid to another account than by the run in DIR. "
    "May be repeated.",
)
edited_input_option = click.option(
    "--input",
    "input_file",
    type=PATH,
    metavar="FILE",
    help="Where the payment file of the run is now, if its bytes are needed (pain.001, Standard 18, layouts "
    "of banks); default: the file of its name beside DIR, here, or in a folder beside DIR.",
)


def _name_or_login(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    """The name given, else the login name; None where this user has none."""
    if name is not None and name.strip():
        return name
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # before Python 3.13, what the missing part of the system raises
        return None


by_option = click.option(
    "--by",
    metavar="NAME",
    callback=_name_or_login,
    help="Who decides, for the record; default: the login name.",
)
sign_option = click.option(
    "--sign-with",
    type=PATH,
    metavar="KEY",
    help="Sign manifest.json with this Ed25519 private key, PEM; default: what the profile says. Its "
    "password, if it has one, is what PRECHECK_SIGN_PASSWORD says.",
)
observing_options: list[Callable[..., Any]] = [
    click.option(
        "--metrics-listen",
        type=Listen(),
        metavar="ADDRESS:PORT",
        help="Serve what the process is doing for Prometheus while it works, such as on 127.0.0.1:9464.",
    ),
    click.option(
        "--traces",
        is_flag=True,
        envvar="PRECHECK_TRACES",
        help="Send a trace of each question by OpenTelemetry, as the variables OTEL_* say.",
    ),
]
as_json_option = click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
review_options: list[Callable[..., Any]] = [
    click.option(
        "--decisions",
        type=PATH,
        metavar="FILE",
        help="A copy of this run's report.xlsx, with what people wrote into Decision and Reason.",
    ),
    edited_input_option,
    by_option,
]
payment_file_options: list[Callable[..., Any]] = [
    click.option(
        "--allow-simulated",
        is_flag=True,
        help="Write payment files from a sandbox's answers; their names say .simulated.",
    ),
    sign_option,
    as_json_option,
]


def options(*groups: list[Callable[..., Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command these options, in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return add


class Given(SimpleNamespace):
    """What the user gave: the value of each argument and option, under its name in click."""

    def make(self, kind: Callable[..., Made], **others: object) -> Made:
        """Make the arguments of a job: a field that is not among `others` has the option of its name."""
        fields = signature(kind).parameters
        return kind(**{name: value for name, value in vars(self).items() if name in fields} | others)


def as_given(command: Callable[[Given], None]) -> Callable[..., None]:
    """Let click call a command with all that the user gave as one value."""

    @wraps(command)
    def call(**values: object) -> None:
        command(Given(**values))

    return call


def read_mapping(pairs: tuple[str, ...]) -> dict[str, str]:
    """Parse `--map`: canonical field -> header.

    Raises:
        UsageError: a mapping is malformed, names no field, or maps a field twice.
    """
    from schemas.payments import FIELDS, IGNORE

    mapping = {}
    for pair in pairs:
        name, separator, header = pair.partition("=")
        if not separator or not name.strip() or not header.strip():
            raise UsageError(Sentence("cli.write_field_header", pair=pair))
        if name.strip() not in (*FIELDS, IGNORE):
            raise UsageError(Sentence("cli.no_field_one", pair=pair, name=name.strip(), fields=list(FIELDS)))
        if name.strip() in mapping:
            raise UsageError(Sentence("cli.mapped_twice_name", pair=pair, name=name.strip()))
        mapping[name.strip()] = header.strip()
    return mapping
