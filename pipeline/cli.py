"""The `precheck` command: parse, call, print, exit. No decision lives here.

Heavy imports stand inside the commands, so that `precheck --help` answers at once.
"""

import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import click

from pipeline.commands import explain as explain_commands
from pipeline.commands import folder as folder_commands
from pipeline.commands import review as review_commands
from pipeline.errors import CONCERN_ONE_FILE, DiskError, PrecheckError, UsageError, most_serious

if TYPE_CHECKING:
    from rich.console import Console

    from schemas.summary import Summary

WARNINGS = ("PAYMENT_REPEATED", "MANY_NAMES", "ENUMERATION", "MIXED_SCRIPTS")
OUTCOMES = ("match", "close_match", "no_match", "not_possible", "rejected", "deferred", "unanswered")

EXIT_STATUS = """\b
Exit status:
    0  every row is decided
    1  a row has an outcome or a warning named by --fail-on
    2  the command was called with words that do not fit
   65  the input file cannot be used
   73  an output cannot be created
   74  the disk is full or failed
   75  not every row is decided: run the same command again
   76  the server broke the protocol repeatedly
   77  the credentials or the certificate were refused
   78  the configuration cannot be used, or there is no trusted TLS connection
  130  stopped by Ctrl-C, or 143 by SIGTERM: run the same command again
"""


class Group(click.Group):
    """Turns the errors of the program into one sentence and an exit status."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 (click's own signature)
        """Run the command that was named."""
        os.umask(0o077)  # whatever is written is for its owner, the folders above it too
        before = _on_signal(_leave)  # before anything heavy is imported
        try:
            return super().invoke(ctx)
        except PrecheckError as error:
            _say(str(error))
            sys.exit(error.exit_code)
        except KeyboardInterrupt as interrupt:
            [number] = interrupt.args or [signal.SIGINT]
            _say(_stopped_by(number))
            sys.exit(128 + number)
        except BrokenPipeError:
            # Whoever read our output has gone; there is nobody left to tell.
            with suppress(OSError):
                sys.stdout.close()
            sys.exit(DiskError.exit_code)
        except OSError as error:
            # Files are written where errors of theirs are known: what failed is an output stream.
            with suppress(OSError):
                _say(f"the output cannot be written ({error.strerror}); make room, or send it elsewhere")
            sys.exit(DiskError.exit_code)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


# Whether a path can be used is found out, and told, where it is used.
FILE = click.Path(path_type=Path, readable=False)
FOLDER = click.Path(path_type=Path, readable=False)


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


profile_options: list[Callable[..., Any]] = [
    click.option(
        "--profile",
        metavar="NAME",
        help="Which profile of the configuration to use. Without it, a sandbox is started that gives "
        "simulated answers; sandbox-standard does so for VoP Standard.",
    ),
    click.option("--config", type=FILE, metavar="FILE", help="The configuration file."),
]
input_options: list[Callable[..., Any]] = [
    click.option(
        "--map",
        "mapping",
        multiple=True,
        metavar="FIELD=HEADER",
        help="Read the column HEADER as FIELD, such as --map name=Beneficiary. May be repeated.",
    ),
    click.option("--encoding", metavar="NAME", help="Of a CSV file that is not UTF-8, such as cp1252."),
    click.option(
        "--sheet", metavar="NAME", help="Of a workbook; default: the only visible sheet that has data."
    ),
]
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
        type=FOLDER,
        metavar="DIR",
        help="Use the matches of an earlier run in DIR again instead of asking. May be repeated.",
    ),
    click.option(
        "--reuse-max-age",
        type=Days(),
        default="30d",
        show_default=True,
        metavar="DAYS",
        help="How old an answer of --reuse-from may be.",
    ),
]


def _said(_context: click.Context, _option: click.Parameter, reason: str | None) -> str | None:
    """A reason that is one."""
    if reason is None or reason.strip():
        return reason
    raise UsageError("--allow-many-names: the reason is empty; write why, as it is recorded")


def _with(*groups: list[Callable[..., Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return add


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("payee-precheck"), prog_name="precheck")
def main() -> None:
    """Check every payee name in a bulk payment file before the money leaves.

    UK accounts are asked about by Confirmation of Payee, IBANs by Verification of Payee. Try it without
    any account or configuration: `precheck run payments.csv` starts a sandbox with simulated answers.
    """


@main.command(epilog=EXIT_STATUS)
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@_with(profile_options, input_options)
@click.option(
    "--out",
    type=FOLDER,
    metavar="DIR",
    help="Where the results go; default: FILE's name with .precheck. Several FILEs get a folder each in DIR.",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["csv", "parquet"]),
    help="Of the outcome file; default: FILE's, and csv for a workbook.",
)
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice((*OUTCOMES, "warning", *WARNINGS)),
    metavar="OUTCOME",
    help="Exit with 1 if a row has this outcome, this warning such as PAYMENT_REPEATED, or any: warning. "
    "May be repeated.",
)
@click.option(
    "--limit", type=click.IntRange(min=0), metavar="N", help="Ask at most N questions; defer the rest."
)
@order_option
@click.option("--fresh", is_flag=True, help="Forget earlier answers in the same folder and start over.")
@click.option(
    "--allow-many-names",
    "many_names_reason",
    metavar="REASON",
    callback=_said,
    help="Ask also about accounts with more than 3 different names each; REASON is recorded.",
)
@_with(reuse_options)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on standard output.")
@click.option(
    "--quiet",
    is_flag=True,
    help="Print nothing but errors, that answers are simulated, and how to go on with what is left.",
)
@click.option(
    "--log",
    "log_form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="On standard error, text for a person or a JSON document a line.",
)
@click.option(
    "--metrics",
    type=FILE,
    metavar="FILE",
    help="Write figures of the run to FILE, in the Prometheus text format, however it ends.",
)
@click.option(
    "--ping",
    "ping_url",
    envvar="PRECHECK_PING",
    metavar="URL",
    help="Call URL/start, and URL/STATUS with the exit status; without it, what PRECHECK_PING says.",
)
@click.option(
    "--ping-ca", type=FILE, metavar="FILE", help="The only certificate authority to trust for --ping."
)
@click.pass_context
def run(  # noqa: PLR0913 (one argument per option)
    ctx: click.Context,
    *,
    files: tuple[Path, ...],
    profile: str | None,
    config: Path | None,
    mapping: tuple[str, ...],
    encoding: str | None,
    sheet: str | None,
    out: Path | None,
    format_name: str | None,
    fail_on: tuple[str, ...],
    limit: int | None,
    order: str,
    fresh: bool,
    many_names_reason: str | None,
    reuse_from: tuple[Path, ...],
    reuse_max_age: timedelta,
    as_json: bool,
    quiet: bool,
    log_form: Literal["text", "json"],
    metrics: Path | None,
    ping_url: str | None,
    ping_ca: Path | None,
) -> None:
    """Check every payment of FILE and write it back with the outcomes.

    Running the same command again goes on where the last run ended: an answered check is never asked
    again.
    """
    from pipeline.earlier import Permitted
    from pipeline.logs import ProgressEvents, log_summary, log_to_stderr
    from pipeline.monitoring import Watchers, watched
    from pipeline.reports.files import FileEnd, print_files
    from pipeline.reports.progress import progress
    from pipeline.reports.terminal import print_summary
    from pipeline.run import Job, exit_code, folders
    from pipeline.run import run as run_job

    _on_signal(_interrupt)
    log_to_stderr(log_form, quiet=quiet)
    ctx.find_root().obj = log_form
    console = _console()
    places = folders(files, out)
    ends = {file: FileEnd(file.name, None, None) for file in places}
    if len(files) > 1 and not quiet and log_form == "text":
        # Also where an error ends the command: what the files before it came to is told.
        ctx.call_on_close(lambda: print_files(list(ends.values()), console))
    with watched(Watchers(metrics, ping_url, ping_ca)) as told:
        for file, folder in places.items():
            job = Job(
                file=file,
                out=folder,
                profile=profile,
                config=config,
                mapping=_mapping(mapping),
                encoding=encoding,
                sheet=sheet,
                format=format_name,
                order="amount" if order == "amount" else "file",
                limit=limit,
                fresh=fresh,
                many_names_reason=many_names_reason,
                reusable=Permitted(reuse_from, reuse_max_age),
            )
            events = nullcontext(ProgressEvents())
            try:
                with progress(console, quiet=quiet) if log_form == "text" else events as watch:
                    result = run_job(job, watch)
            except CONCERN_ONE_FILE as error:
                _say(str(error))
                ends[file] = FileEnd(file.name, error.exit_code, None)
                continue
            ends[file] = FileEnd(file.name, exit_code(result.summary, fail_on), result.summary)
            told.summaries.append(result.summary)
            if as_json:
                click.echo(result.summary.model_dump_json())
            if log_form == "json":
                log_summary(result.summary, folder, already_finished=result.already_finished)
            elif not quiet:
                print_summary(result.summary, folder, console, already_finished=result.already_finished)
            else:
                _say_in_quiet(file, result.summary)
        sys.exit(most_serious(end.exit_code for end in ends.values() if end.exit_code is not None))


def _say_in_quiet(file: Path, summary: "Summary") -> None:
    """What nobody may miss, however quiet the command is to be."""
    if summary.simulated:
        _say(f"{file.name}: SIMULATED: a sandbox answered; no answer says anything about a real account")
    if summary.next_step:
        _say(summary.next_step)


@main.command()
@click.argument("file", type=FILE)
@_with(profile_options, input_options)
@click.option(
    "--out",
    type=FOLDER,
    metavar="DIR",
    help="The folder of the run, whose answers are not asked for again; default: FILE's name with .precheck.",
)
@_with([order_option], reuse_options)
def plan(  # noqa: PLR0913 (one argument per option)
    *,
    file: Path,
    profile: str | None,
    config: Path | None,
    mapping: tuple[str, ...],
    encoding: str | None,
    sheet: str | None,
    out: Path | None,
    order: str,
    reuse_from: tuple[Path, ...],
    reuse_max_age: timedelta,
) -> None:
    """Say what checking FILE would take, and send nothing.

    What the run in DIR has been answered already, and what --reuse-from answers, is not counted as a call.
    """
    from pipeline.earlier import Permitted
    from pipeline.reports.listings import print_forecast
    from pipeline.run import Job, folders, forecast_file

    _on_signal(_interrupt)
    [folder] = folders([file], out).values()
    job = Job(
        file=file,
        out=folder,
        profile=profile,
        config=config,
        mapping=_mapping(mapping),
        encoding=encoding,
        sheet=sheet,
        order="amount" if order == "amount" else "file",
        reusable=Permitted(reuse_from, reuse_max_age),
    )
    print_forecast(forecast_file(job), _console())


@main.command()
@click.argument("file", type=FILE)
@_with(input_options)
def columns(*, file: Path, mapping: tuple[str, ...], encoding: str | None, sheet: str | None) -> None:
    """Show how each header of FILE is read."""
    from pipeline.formats.columns import ColumnsError
    from pipeline.reports.listings import print_columns
    from pipeline.stages.read import read

    try:
        readings = read(file, mapping=_mapping(mapping), encoding=encoding, sheet=sheet).columns
    except ColumnsError as error:
        if error.readings:
            print_columns(error.readings, _console())
        raise
    print_columns(readings, _console())


@main.command()
def quota() -> None:
    """Show how much of each daily cap is used."""
    from pipeline.caps import cap_uses
    from pipeline.reports.listings import print_quota

    print_quota(cap_uses(), _console())


@main.command()
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.option(
    "--older-than",
    type=Days(),
    default="0d",
    show_default=True,
    metavar="DAYS",
    help="Only names whose answer is older, such as 30d.",
)
@click.option(
    "--outcomes",
    is_flag=True,
    help="Delete the files that hold the names too; with --older-than, if a name was purged now or before. "
    "Running again writes outcomes and reports without the names.",
)
def purge(*, folder: Path, older_than: timedelta, outcomes: bool) -> None:
    """Delete the names that banks returned from the ledger in DIR, the folder of a run.

    Nothing of them is left in the ledger's bytes. The answers stay: no question is asked again.

    These hold the names as well: outcomes.csv or outcomes.parquet, attention.csv, report.html, report.xlsx,
    and what `precheck fix` wrote: corrections.csv and the corrected payment file. Without --outcomes they are
    left alone. With it they are deleted, and so is what a killed run left of them. summary.json,
    approvals.json and the files of `precheck split` hold none. Whoever has a copy, such as a workbook with
    decisions, has the names.

    manifest.json says what was purged and when, so that `precheck verify` misses nothing that went this way.
    """
    from pipeline.purging import purge as purge_folder

    done = purge_folder(folder, older_than, with_files=outcomes)
    _say(f"{folder}: {done.name_count} returned names purged from the ledger")
    if done.deleted:
        _say(f"{folder}: deleted {', '.join(done.deleted)}")
    if done.left:
        _say(f"{folder}: {', '.join(done.left)} may still hold returned names; delete what you do not need")


for _command in (folder_commands.report, folder_commands.show, folder_commands.verify):
    main.add_command(_command)


@main.command()
@_with(profile_options)
def doctor(*, profile: str | None, config: Path | None) -> None:
    """Try the configuration, the certificates, TLS, and the token or whether we are known; check no payee."""
    from pipeline.doctor import diagnose
    from pipeline.logs import log_to_stderr
    from pipeline.reports.listings import print_findings

    _on_signal(_interrupt)
    log_to_stderr("text", quiet=True)
    findings = diagnose(profile, config)
    print_findings([(found.what, found.said, not found.exit_code) for found in findings], _console())
    sys.exit(next((finding.exit_code for finding in findings if finding.exit_code), 0))


@main.command()
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.argument("path", type=FILE, default=Path("precheck.toml"))
def init(*, path: Path, force: bool) -> None:
    """Write a commented configuration to PATH, by default ./precheck.toml."""
    from pipeline.settings import write_example

    write_example(path, force=force)
    then = "fill in your servers and credentials, then try `precheck doctor --profile production`"
    click.echo(f"{path} written; {then}", err=True)


@main.command()
@click.argument("name", required=False)
def schema(*, name: str | None) -> None:
    """Print the JSON Schema of the document NAME; without NAME, list the documents."""
    from schemas.catalogue import json_schema, names

    if name is None:
        click.echo("\n".join(names()))
    elif name in names():
        click.echo(json_schema(name))
    else:
        raise UsageError(f"no document {name!r}; one of {', '.join(names())}")


@main.command()
@click.option(
    "--folder",
    type=FOLDER,
    default=Path("sandbox"),
    show_default=True,
    help="Where certificates, secrets and a ready precheck.toml are written.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; 0 takes a free one.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the simulated network.")
@click.option(
    "--latency",
    "latency_s",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="Median wait of a simulated bank.",
)
@click.option("--responder-faults", is_flag=True, help="Let some simulated banks be slow, fail or break TLS.")
@click.option(
    "--token-life",
    "token_life_s",
    type=click.IntRange(min=0),
    default=3600,
    metavar="SECONDS",
    help="How long access tokens live.",
)
@click.option(
    "--rate-max",
    "rate_per_s_max",
    type=click.IntRange(min=1),
    metavar="N",
    help="Answer 429 beyond N requests a second.",
)
@click.option(
    "--daily-cap",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    help="Requests a day that the test role allows.",
)
@click.option(
    "--cop-wait",
    "cop_responder_wait_s",
    type=click.FloatRange(min=0),
    default=7.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a silent UK bank is awaited before the answer is 504.",
)
@click.option(
    "--vop-wait",
    "vop_responder_wait_s",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="The same for a bank behind an IBAN.",
)
@click.option(
    "--client-certificate-required",
    is_flag=True,
    help="Refuse clients without a certificate in the TLS handshake, for every API.",
)
@click.option(
    "--server-certificate",
    type=click.Choice(["good", "wrong-authority", "expired", "wrong-host"]),
    default="good",
    show_default=True,
    help="Serve with a certificate that a client must not trust.",
)
@click.option(
    "--tls",
    type=click.Choice(["reference", "1.1-only", "other-suite"]),
    default="reference",
    show_default=True,
    help="Speak only a version or suites of TLS that a client must not accept.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[:CONDITION,...]",
    help="Let a fault befall the answers: all of them, or those that meet every condition, such as "
    "500:probability=0.05,seed=7. May be repeated; docs/sandbox.md has the conditions.",
)
@click.option("--list-faults", is_flag=True, help="Print every fault, and exit.")
@click.option("--call-log", type=FILE, help="Append one JSON line per request.")
@click.option("--while-stdin-is-open", is_flag=True, hidden=True)
@click.option(
    "--write-payments",
    type=FILE,
    metavar="FILE",
    help="Write a payment file drawn from the simulated network, and exit.",
)
@click.option(
    "--rows", type=click.IntRange(min=1), default=1000, show_default=True, help="Rows of --write-payments."
)
@click.option("--force", is_flag=True, help="Let --write-payments replace a file that is there.")
def sandbox(  # noqa: PLR0913 (one argument per option)
    *,
    folder: Path,
    host: str,
    port: int,
    seed: int,
    latency_s: float,
    responder_faults: bool,
    token_life_s: int,
    rate_per_s_max: int | None,
    daily_cap: int,
    cop_responder_wait_s: float,
    vop_responder_wait_s: float,
    client_certificate_required: bool,
    server_certificate: str,
    tls: str,
    faults: tuple[str, ...],
    list_faults: bool,
    call_log: Path | None,
    while_stdin_is_open: bool,
    write_payments: Path | None,
    rows: int,
    force: bool,
) -> None:
    """Serve the three APIs with simulated answers until stopped.

    The folder gets a precheck.toml whose profiles point at this server. All banks, accounts and
    names are invented.
    """
    if list_faults:
        from pipeline.sandbox.faults.listing import lines

        click.echo("\n".join(lines()))
        return
    if write_payments is not None:
        from pipeline.sandbox.samples import write_payments as write_sample

        write_sample(write_payments, rows=rows, seed=seed, force=force)
        return
    from pipeline.sandbox.faults.selection import parse
    from pipeline.sandbox.server import SandboxSettings
    from pipeline.sandbox.server import run as serve
    from pipeline.sandbox.settings import ServerCertificate, Tls

    def announce(url: str) -> None:
        click.echo(url)
        sys.stdout.flush()
        if not while_stdin_is_open:
            config = folder / "precheck.toml"
            click.echo(
                f"Serving simulated answers at {url}. Try, in another terminal:\n"
                f"  precheck run FILE --profile sandbox --config {config}\n"
                "A run that is to be resumed later needs the same --folder and --port. Stop with Ctrl-C.",
                err=True,
            )

    settings = SandboxSettings(
        folder=folder,
        host=host,
        port=port,
        seed=seed,
        latency_s=latency_s,
        responder_faults=responder_faults,
        token_life_s=token_life_s,
        rate_per_s_max=rate_per_s_max,
        daily_cap=daily_cap,
        cop_responder_wait_s=cop_responder_wait_s,
        vop_responder_wait_s=vop_responder_wait_s,
        client_certificate_required=client_certificate_required,
        server_certificate=ServerCertificate(server_certificate),
        tls=Tls(tls),
        faults=tuple(map(parse, faults)),
        call_log=call_log,
    )
    if while_stdin_is_open:
        # Whoever started this process says what there is to be said.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    serve(settings, announce=announce)
    if while_stdin_is_open:
        # The folder was made for this sandbox alone, by a process that may be dead.
        shutil.rmtree(folder, ignore_errors=True)


main.add_command(explain_commands.explain)
main.add_command(review_commands.fix)
main.add_command(review_commands.split)


def _end_with_stdin() -> None:
    """End with the process that started this one: it alone holds the other end of standard input."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _on_signal(handler: Callable[[int, object], NoReturn]) -> dict[signal.Signals, Any]:
    """Have SIGINT and SIGTERM handled like this; return what handled them before."""
    return {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}


def _leave(number: int, _frame: object) -> NoReturn:
    """End a command at once, while there is nothing to close.

    An exception would not do: Python drops those that are raised in the callbacks of its imports, and
    the command would go on as if it had not been asked to stop.
    """
    os.write(2, f"precheck: {_stopped_by(number)}\n".encode())
    os._exit(128 + number)


def _interrupt(number: int, _frame: object) -> NoReturn:
    """End a command that has things to close, wherever it is; while questions are asked, `run` listens."""
    raise KeyboardInterrupt(number)


def _stopped_by(number: int) -> str:
    name = signal.Signals(number).name
    return f"stopped by {name}; what was answered is kept: run the same command again to go on"


def _mapping(pairs: tuple[str, ...]) -> dict[str, str]:
    from schemas.payments import FIELDS

    mapping = {}
    for pair in pairs:
        name, separator, header = pair.partition("=")
        if not separator or not name.strip() or not header.strip():
            raise UsageError(f"--map {pair}: write FIELD=HEADER, such as --map name=Beneficiary")
        if name.strip() not in FIELDS:
            raise UsageError(f"--map {pair}: no field {name.strip()}; one of {', '.join(FIELDS)}")
        if name.strip() in mapping:
            raise UsageError(f"--map {pair}: {name.strip()} is mapped twice; name one header")
        mapping[name.strip()] = header.strip()
    return mapping


def _say(sentence: str) -> None:
    context = click.get_current_context(silent=True)
    if context is not None and context.find_root().obj == "json":
        import structlog

        structlog.get_logger().error(sentence)
        return
    from pipeline.reports.terminal import visible

    click.echo(f"precheck: {visible(sentence)}", err=True)


def _console() -> "Console":
    from pipeline.reports.terminal import console

    return console()


if __name__ == "__main__":
    main()
