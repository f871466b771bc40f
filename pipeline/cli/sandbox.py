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
from pipeline.cli.options import AT_LEAST_0, AT_LEAST_1, PATH, Given, as_given, option
from pipeline.wording import Sentence


@click.command(cls=Command)
@option(
    "--folder",
    type=PATH,
    shown=Path("sandbox"),
    help="Folder for certificates, secrets and a ready precheck.toml.",
)
@option("--host", type=str, shown="127.0.0.1", help="The address to listen on.")
@option("--port N", type=click.IntRange(0, 65535), default=0, help="The port; 0 takes a free one.")
@option("--seed", type=int, shown=1, help="Seed of the simulated network.")
@option(
    "--latency SECONDS", "latency_s", type=AT_LEAST_0, default=0.0, help="Median wait of a simulated bank."
)
@option(
    "--latency-spread SIGMA",
    type=AT_LEAST_0,
    shown=0.73,
    help="How much the waits differ (log-normal); with 0, each takes --latency.",
)
@option("--rehearse", help="Answer about unknown accounts too, in the usual mix of a bank network.")
@option("--responder-faults", help="Let some simulated banks be slow, fail or break TLS.")
@option(
    "--token-life SECONDS",
    "token_life_s",
    type=click.IntRange(min=0),
    default=3600,
    help="Lifetime of access tokens.",
)
@option("--rate-max N", "rate_per_s_max", type=AT_LEAST_1, help="Answer 429 beyond N requests a second.")
@option("--daily-cap N", type=AT_LEAST_1, shown=50, help="Requests a day that the test role allows.")
@option(
    "--cop-wait SECONDS",
    "cop_responder_wait_s",
    type=AT_LEAST_0,
    shown=7.0,
    help="How long the sandbox waits for a silent UK bank before it answers 504.",
)
@option(
    "--vop-wait SECONDS",
    "vop_responder_wait_s",
    type=AT_LEAST_0,
    shown=5.0,
    help="The same for banks of IBANs.",
)
@option(
    "--client-certificate-required",
    help="Refuse clients without a certificate in the TLS handshake, for every API.",
)
@option(
    "--server-certificate",
    type=click.Choice(["good", "wrong-authority", "expired", "wrong-host"]),
    shown="good",
    help="Serve with a certificate that a client must not trust.",
)
@option(
    "--tls",
    type=click.Choice(["reference", "1.1-only", "other-suite"]),
    shown="reference",
    help="Speak only a version or suites of TLS that a client must not accept.",
)
@option(
    "--fault NAME[:CONDITION,...]",
    "faults",
    multiple=True,
    help="Apply a fault to all answers, or to those that meet every condition, for example "
    "500:probability=0.05,seed=7. Repeatable; docs/sandbox.md lists the conditions.",
)
@option("--list-faults", help="Print every fault, and exit.")
@option("--list-accounts", help="Print every dummy account with its answer, and exit.")
@option(
    "--scenario",
    type=click.Choice(["basic", "faults", "tls", "caps"]),
    help="Walk a client through all cases of one kind; see docs/sandbox.md.",
)
@option(
    "--verdict FILE",
    "verdicts",
    multiple=True,
    help="At the end, write which rules the client kept, broke or never met: as JSON (.json), JUnit "
    "XML (.xml) or text. Repeatable.",
)
@option(
    "--control",
    "has_control",
    help="Listen on control.sock in the folder for changes of faults, caps and the clock.",
)
@option(
    "--clock-skew-max SECONDS",
    "clock_skew_max_s",
    type=AT_LEAST_0,
    shown=300.0,
    help="Maximum difference between X-Request-Timestamp and the sandbox's clock.",
)
@option("--call-log", type=PATH, help="Append one JSON line per request.")
@option("--while-stdin-is-open", hidden=True)
@option("--write-payments FILE", help="Write a payment file drawn from the simulated network, and exit.")
@option("--rows N", type=AT_LEAST_1, shown=1000, help="Rows of --write-payments.")
@option("--force", help="Let --write-payments replace an existing file.")
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
