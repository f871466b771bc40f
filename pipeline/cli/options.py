"""Options that several commands share, the types of their values, and the time."""

import getpass
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import wraps
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import click

from pipeline.cli.helps import completed
from pipeline.cli.language import in_words
from pipeline.errors import UsageError
from pipeline.wording import Sentence

Made = TypeVar("Made")


class NamedPath(click.Path):
    """A non-empty path: an empty one would mean the working folder."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:  # noqa: ANN401 (click's own signature)
        """Parse the path."""
        if value == "":
            key = "cli.empty_name_of_option" if isinstance(param, click.Option) else "cli.empty_name"
            self.fail(in_words(Sentence(key)), param, ctx)
        return super().convert(value, param, ctx)


PATH = NamedPath(path_type=Path, readable=False)  # any path; each command checks it when it uses it


AT_LEAST_0, AT_LEAST_1 = click.FloatRange(min=0), click.IntRange(min=1)


def option(written: str, *name: str, **settings: Any) -> Callable[..., Any]:  # noqa: ANN401 (click's own)
    """Return an option, written as in the help: `--force` is a flag, `--out DIR` takes a value.

    FILE and DIR are paths. `shown` is a default that the help shows.
    """
    long, _, metavar = written.partition(" ")
    if metavar:
        settings["metavar"] = metavar
    elif "type" not in settings:
        settings["is_flag"] = True
    if metavar in {"FILE", "DIR"}:
        settings["type"] = PATH
    if "shown" in settings:
        settings |= {"default": settings.pop("shown"), "show_default": True}
    return click.option(long, *name, **settings)


class OutcomeFormats(click.Choice[str]):
    """The formats of outcome files; their table is imported only when needed."""

    def __init__(self) -> None:
        self.case_sensitive = True

    def __getattr__(self, name: str) -> tuple[str, ...]:
        if name != "choices":
            raise AttributeError(name)
        from pipeline.formats.registry import NAMES

        return NAMES


def country(code: str) -> str:
    """Parse a two-letter country code."""
    from pipeline.rules.identifiers import countries

    if code.upper() not in countries():
        raise click.BadParameter(in_words(Sentence("cli.not_a_country_code", value=repr(code))))
    return code.upper()


_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def duration(text: str, units: str = "smh", refusal: str = "cli.not_a_duration") -> timedelta:
    """Parse a number and one of these units; the sentence with the key `refusal` refuses everything else."""
    if not re.fullmatch(f"[0-9]{{1,5}}[{units}]", text):
        raise click.BadParameter(in_words(Sentence(refusal, value=repr(text))))
    return timedelta(**{_UNITS[text[-1]]: int(text[:-1])})


def days(text: str) -> timedelta:
    """Parse a number of days, such as 30d."""
    return duration(text, "d", "cli.not_a_number_of_days")


def listen_address(text: str) -> tuple[str, int]:
    """Parse an address and a port, written as 127.0.0.1:9464 or [::1]:9464."""
    parts = re.fullmatch(r"(\[[0-9a-f:.]+\]|[0-9.]+):([0-9]{1,5})", text, re.IGNORECASE)
    if parts is None or not 0 < int(parts[2]) < 2**16:
        raise click.BadParameter(in_words(Sentence("cli.not_an_address_and_port", value=repr(text))))
    return parts[1].strip("[]"), int(parts[2])


def _profiles() -> list[str]:
    from pipeline.config.file import BUILT_IN, ConfigurationFile

    file = ConfigurationFile()
    return [*BUILT_IN, *(file.whole.profiles if file.is_there else ())]


def _input_formats() -> tuple[str, ...]:
    from pipeline.formats.registry import INPUT_NAMES

    return INPUT_NAMES


profile_options: list[Callable[..., Any]] = [
    option(
        "--profile NAME",
        shell_complete=completed(_profiles),
        help="The profile of the configuration file. Without one, a sandbox gives simulated answers; "
        "sandbox-standard simulates VoP Standard.",
    ),
    option("--config FILE", help="The configuration file."),
]
rehearse_option = option(
    "--rehearse",
    help="Without a provider: invent answers about FILE, in a realistic mix; nothing can be released.",
)
ledger_options: list[Callable[..., Any]] = [
    option("--profile NAME", required=True, help="The profile that names the ledger."),
    profile_options[1],
]
input_options: list[Callable[..., Any]] = [
    option(
        "--map FIELD=HEADER",
        "mapping",
        multiple=True,
        help="Read column HEADER as FIELD, for example name=Beneficiary. FIELD ignore skips the column. "
        "Repeatable.",
    ),
    option(
        "--input-format NAME",
        shell_complete=completed(_input_formats),
        help="The format of FILE, if precheck cannot tell; `precheck formats` lists all.",
    ),
    option("--encoding NAME", help="Encoding of a text file that is not UTF-8, for example cp1252."),
    option("--sheet NAME", help="Sheet of a workbook. Default: the only visible sheet with data."),
    option(
        "--country CODE", type=country, help="Country of all accounts without an IBAN: GB for UK accounts."
    ),
]
log_option = option(
    "--log",
    "log_form",
    type=click.Choice(["text", "json"]),
    shown="text",
    help="Format of messages on standard error: text, or one JSON document a line.",
)
pain002_option = option("--pain002", help="For pain.001 input, also write a pain.002 report.")
order_option = option(
    "--order",
    type=click.Choice(["file", "amount"]),
    shown="file",
    help="Check rows in file order, or the largest amounts first.",
)
reuse_options: list[Callable[..., Any]] = [
    option(
        "--reuse-from DIR",
        multiple=True,
        help="Reuse the matches of the earlier run in DIR instead of asking again. Repeatable.",
    ),
    option(
        "--reuse-max-age DAYS",
        type=days,
        shown="30d",
        help="Maximum age of reused answers. Without --reuse-from: reuse matches from all runs in the "
        "shared ledger.",
    ),
]
data_set_options: list[Callable[..., Any]] = [
    option(
        "--work DIR",
        help="Working folder. With a shared ledger, `precheck worker` takes questions from it. If FILE "
        "is a data set (a folder of CSV, Parquet or pain.001 parts, or a Parquet file with --engine), "
        "intermediate files go there. Deleted when every row is decided.",
    ),
    option(
        "--engine",
        type=click.Choice(["pool", "dask"]),
        help="For a data set: process its parts on this machine (the default) or with Dask.",
    ),
    option(
        "--scheduler ADDRESS", help="Dask scheduler, for example tcp://host:8786. Default: a local cluster."
    ),
    option(
        "--no-ask",
        help="For a data set: let `precheck worker` send the requests; run the same command again to finish.",
    ),
]
compare_option = option(
    "--compare-with DIR",
    multiple=True,
    help="Warn about payees who are new or whose account has changed since the run in DIR. Repeatable.",
)
edited_input_option = option(
    "--input FILE",
    "input_file",
    help="The payment file, for formats that are written back byte for byte (pain.001, Standard 18, "
    "bank layouts). Default: the file of that name in or beside the current folder or DIR.",
)


def name_or_login(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    """Return the given name, or else the login name; None if there is none."""
    return name if name is not None and name.strip() else login_name()


def login_name() -> str | None:
    """Return the user's login name; None if the system knows none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # before Python 3.13, raised if a system module is missing
        return None


def given_reason(_context: click.Context, _option: click.Parameter, reason: str | None) -> str | None:
    """Refuse a blank reason."""
    if reason is None or reason.strip():
        return reason
    raise UsageError(Sentence("cli.many_names_reason_empty"))


by_option = option(
    "--by NAME",
    callback=name_or_login,
    help="Name of the person who decides, for the record. Default: the login name.",
)
sign_option = option(
    "--sign-with KEY",
    type=PATH,
    help="Sign manifest.json with this Ed25519 private key (PEM). Default: the profile's key. "
    "PRECHECK_SIGN_PASSWORD holds its password.",
)
observing_options: list[Callable[..., Any]] = [
    option(
        "--metrics-listen ADDRESS:PORT",
        type=listen_address,
        help="Serve Prometheus metrics during the run, for example on 127.0.0.1:9464.",
    ),
    option(
        "--traces",
        envvar="PRECHECK_TRACES",
        help="Send OpenTelemetry traces, configured by the OTEL_* variables.",
    ),
]
as_json_option = option("--json", "as_json", help="Print the result as JSON.")
review_options: list[Callable[..., Any]] = [
    option("--decisions FILE", help="A copy of report.xlsx with Decision and Reason filled in."),
    edited_input_option,
    by_option,
]
payment_file_options: list[Callable[..., Any]] = [
    option(
        "--allow-simulated", help="Write payment files from sandbox answers, with .simulated in their names."
    ),
    sign_option,
    as_json_option,
]


def options(*groups: list[Callable[..., Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command these options, in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return add


class Given(SimpleNamespace):
    """The values of all arguments and options, under their names in click."""

    def make(self, kind: Callable[..., Made], **others: object) -> Made:
        """Make a job's arguments from the options with the same names; `others` has the remaining fields."""
        fields = signature(kind).parameters
        return kind(**{name: value for name, value in vars(self).items() if name in fields} | others)


def now() -> datetime:
    """Return the current time in UTC, which commands pass to their jobs."""
    return datetime.now(UTC)


def as_given(command: Callable[[Given], None]) -> Callable[..., None]:
    """Pass all arguments and options to a command as a single value."""

    @wraps(command)
    def call(**values: object) -> None:
        given = Given(**values)
        if values.get("rehearse") and "profile" in values:
            if given.profile is not None:
                raise UsageError(Sentence("cli.rehearse_excludes_profile"))
            from schemas.summary import REHEARSAL

            given.profile = REHEARSAL
        command(given)

    return call


def read_mapping(pairs: tuple[str, ...]) -> dict[str, str]:
    """Parse `--map`: field -> header (UsageError: malformed, an unknown field, or one mapped twice)."""
    from difflib import get_close_matches

    from schemas.payments import FIELDS, IGNORE

    mapping = {}
    for pair in pairs:
        name, separator, header = pair.partition("=")
        if not separator or not name.strip() or not header.strip():
            raise UsageError(Sentence("cli.map_pair_malformed", pair=pair))
        if name.strip() not in (*FIELDS, IGNORE):
            if near := get_close_matches(name.strip(), FIELDS, n=1):
                raise UsageError(
                    Sentence("cli.map_field_did_you_mean", pair=pair, name=name.strip(), near=near[0])
                )
            raise UsageError(
                Sentence("cli.map_field_unknown", pair=pair, name=name.strip(), fields=list(FIELDS))
            )
        if name.strip() in mapping:
            raise UsageError(Sentence("cli.map_field_twice", pair=pair, name=name.strip()))
        mapping[name.strip()] = header.strip()
    return mapping
