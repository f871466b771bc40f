"""`precheck sandbox`: serve the three APIs with simulated answers."""

import os
import shutil
import signal
import sys
import threading
from pathlib import Path

import click

from pipeline.cli.helps import Command
from pipeline.cli.language import in_words, translated
from pipeline.cli.options import PATH, Given, as_given
from pipeline.wording import Sentence


@click.command(cls=Command)
@click.option(
    "--folder",
    type=PATH,
    default=Path("sandbox"),
    show_default=True,
    help="Where certificates, secrets and a ready precheck.toml are written.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="The port; 0 takes a free one."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the simulated network.")
@click.option(
    "--latency",
    "latency_s",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="Median wait of a simulated bank.",
)
@click.option(
    "--latency-spread",
    type=click.FloatRange(min=0),
    default=0.73,
    show_default=True,
    metavar="SIGMA",
    help="How much the waits differ (log-normal); with 0, each takes --latency.",
)
@click.option(
    "--rehearse", is_flag=True, help="Answer about unknown accounts too, in the usual mix of a bank network."
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
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    metavar="N",
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
    help="Apply a fault to all answers, or to those that meet every condition, for example "
    "500:probability=0.05,seed=7. Repeatable; docs/sandbox.md lists the conditions.",
)
@click.option("--list-faults", is_flag=True, help="Print every fault, and exit.")
@click.option("--list-accounts", is_flag=True, help="Print every dummy account with its answer, and exit.")
@click.option(
    "--scenario",
    type=click.Choice(["basic", "faults", "tls", "caps"]),
    help="Walk a client through all cases of one kind; see docs/sandbox.md.",
)
@click.option(
    "--verdict",
    "verdicts",
    type=PATH,
    multiple=True,
    metavar="FILE",
    help="At the end, write which rules the client kept, broke or never met: as JSON (.json), JUnit "
    "XML (.xml) or text. Repeatable.",
)
@click.option(
    "--control",
    "has_control",
    is_flag=True,
    help="Listen on control.sock in the folder for changes of faults, caps and the clock.",
)
@click.option(
    "--clock-skew-max",
    "clock_skew_max_s",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Maximum difference between X-Request-Timestamp and the sandbox's clock.",
)
@click.option("--call-log", type=PATH, help="Append one JSON line per request.")
@click.option("--while-stdin-is-open", is_flag=True, hidden=True)
@click.option(
    "--write-payments",
    type=PATH,
    metavar="FILE",
    help="Write a payment file drawn from the simulated network, and exit.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Rows of --write-payments.",
)
@click.option("--force", is_flag=True, help="Let --write-payments replace an existing file.")
@as_given
def sandbox(given: Given) -> None:
    """Serve the three APIs with simulated answers until stopped.

    The folder gets a precheck.toml whose profiles point at this server. All banks, accounts and
    names are invented.
    """
    if given.list_faults:
        from pipeline.sandbox.faults.catalogue import lines

        click.echo("\n".join(lines(translated)))
        return
    if given.list_accounts:
        from pipeline.sandbox.accounts import account_lines

        click.echo("\n".join(account_lines()))
        return
    if given.write_payments is not None:
        from pipeline.sandbox.samples import write_payments

        write_payments(given.write_payments, rows=given.rows, seed=given.seed, force=given.force)
        return
    from pipeline.files.open_files import require_open_files
    from pipeline.sandbox.faults.selection import parse
    from pipeline.sandbox.scenarios import scenario_named
    from pipeline.sandbox.server import SandboxSettings
    from pipeline.sandbox.server import run as serve
    from pipeline.sandbox.settings import ServerCertificate, Tls

    require_open_files()

    def announce(url: str) -> None:
        click.echo(url)
        sys.stdout.flush()
        if not given.while_stdin_is_open:
            serves = Sentence("cli.sandbox_serves", url=url, config=given.folder / "precheck.toml")
            click.echo(in_words(serves), err=True)
        if given.scenario is not None:
            what = translated(scenario_named(given.scenario).what)
            scenario = Sentence("sandbox.scenario", name=given.scenario, folder=given.folder, what=what)
            click.echo(in_words(scenario), err=True)

    def conclude(line: str) -> None:
        click.echo(f"precheck: {line}", err=True)

    settings = given.make(
        SandboxSettings,
        server_certificate=ServerCertificate(given.server_certificate),
        tls=Tls(given.tls),
        faults=tuple(map(parse, given.faults)),
    )
    if given.while_stdin_is_open:
        # The parent process reports the interruption itself.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    serve(settings, announce=announce, conclude=conclude)
    if given.while_stdin_is_open:
        # The folder was made for this sandbox, by a parent that may be dead.
        shutil.rmtree(given.folder, ignore_errors=True)


def _end_with_stdin() -> None:
    """End together with the parent process, which alone holds the other end of standard input."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)
