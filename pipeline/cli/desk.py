"""`precheck desk`: serve the desk to a browser; and the hidden command that it runs for each check."""

import gc
import os
import secrets
import signal
import sys
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.exit_status import notify, stoppable
from pipeline.cli.helps import Command
from pipeline.cli.options import PATH, Given, as_given, login_name, now, option
from pipeline.errors import ConfigurationError, UsageError
from pipeline.files.plain import real_path
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from socket import socket

    from pipeline.config.file import DeskSection
    from pipeline.desk.access import Access
    from pipeline.desk.folders import DeskHome

_OPENING = "open.html"
_ADDRESS = "address"  # file with the port and the secret path of the running desk's address
_OF_POLARS = {"_RJEM_MALLOC_CONF": "dirty_decay_ms:200,muzzy_decay_ms:0,narenas:2", "POLARS_MAX_THREADS": "1"}
"""Makes polars return freed memory at once, and use one thread: dividing a page's work takes longer."""
_COLLECTED_AFTER = 2_000  # how many new objects start the garbage collector


@click.command(cls=Command)
@option("--home DIR", help="Folder for files and runs. Default: in your data folder.")
@option("--config FILE", help="The configuration file, with its profiles and [desk].")
@option(
    "--port N",
    type=click.IntRange(0, 65535),
    shown=8770,
    help="Port on the loopback address; 0 takes a free one.",
)
@option("--no-browser", help="Print the one-time link instead of opening a browser.")
@option("--new-link NAME", help="Print a link to the running desk for another session with this name.")
@option(
    "--socket PATH", type=PATH, help="Serve a team behind a proxy on this Unix socket, configured by [desk]."
)
@option(
    "--demo", help="Open a temporary desk with five invented files in five states, and delete it afterwards."
)
@as_given
def desk(given: Given) -> None:
    """Check, review and release payment files in the browser.

    The desk listens on this computer only. Closing it leaves checks running; the next start finds them.
    """
    _import_polars()
    from pipeline.config.file import DeskSection, find, read, usual
    from pipeline.desk.folders import DeskHome
    from pipeline.files.open_files import require_open_files

    require_open_files()
    if given.config is not None:
        os.environ["PRECHECK_CONFIG"] = str(real_path(find(given.config)))
    path = usual()
    settings = (None if path is None else read(path).desk) or DeskSection()
    if given.demo:
        _serve_demo(given, settings)
        return
    home = DeskHome((given.home or _usual_home()).absolute())
    home.make()
    if given.new_link is not None:
        click.echo(_link(home, given.new_link, _running(home)))
    elif given.socket is not None:
        _serve_team(home, settings, given.socket)
    else:
        _serve_one(home, settings, given.port, opens_browser=not given.no_browser)


@click.command(cls=Command, hidden=True)
@click.argument("folder", type=PATH)
def desk_check(*, folder: Path) -> None:
    """Check the file in FOLDER, a folder of the desk."""
    from pipeline.cli.logs import log_to_stderr
    from pipeline.desk.checks import check_file
    from pipeline.files.open_files import require_open_files

    require_open_files()
    stop = stoppable()
    log_to_stderr("json", quiet=False)
    sys.exit(check_file(folder, now, stop, lambda: os.kill(os.getpid(), signal.SIGTERM)))


def _serve_one(home: "DeskHome", settings: "DeskSection", port: int, *, opens_browser: bool) -> None:
    from pipeline.desk.access import LocalAccess, Sessions, system_tells
    from pipeline.desk.server import loopback
    from pipeline.files.atomic import write_atomically

    listening = loopback(port)
    port = listening.getsockname()[1]
    lasts = {"idle_max_s": settings.idle_minutes_max * 60, "max_s": settings.session_hours_max * 3600}
    sessions = Sessions(home.path, **lasts, clock=time.time, chance=_token)
    access = LocalAccess(port, sessions, "" if system_tells() else f"/{_token()}")
    address = f"{port}{access.prefix}"
    with write_atomically(home.path / _ADDRESS) as file:
        file.write(address.encode())

    def started() -> None:
        link = _link(home, login_name() or "me", address)
        if not opens_browser:
            click.echo(link)
            sys.stdout.flush()
            return
        page = _opening_page(home, link)
        if webbrowser.open(page.as_uri()):
            notify(Sentence("cli.desk_is_open", address=f"http://127.0.0.1:{port}/"))
        else:
            notify(Sentence("cli.no_browser"))
            click.echo(link)

    _serve(home, settings, access, listening, started)


def _serve_demo(given: Given, settings: "DeskSection") -> None:
    import tempfile

    from pipeline.desk import demo
    from pipeline.desk.folders import DeskHome

    if given.home is not None or given.socket is not None or given.new_link is not None:
        raise UsageError(Sentence("cli.demo_uses_own_folder"))
    home = DeskHome(Path(tempfile.mkdtemp(prefix=demo.PREFIX)))
    home.make()
    try:
        notify(Sentence("cli.preparing_demo_desk"))
        config = home.path / "precheck.toml"
        config.write_text(demo.CONFIG)
        os.environ["PRECHECK_CONFIG"] = str(config)
        demo.fill(home, now, lambda: secrets.token_hex(5), {**os.environ})
        _serve_one(home, settings, given.port, opens_browser=not given.no_browser)
    finally:
        demo.forget(home)


def _import_polars() -> None:
    """Import polars with the desk's settings, which the processes of checks must not inherit."""
    ours = {name: value for name, value in _OF_POLARS.items() if name not in os.environ}
    os.environ.update(ours)
    import polars as pl

    pl.thread_pool_size()  # starts its threads
    for name in ours:
        del os.environ[name]


def _serve_team(home: "DeskHome", settings: "DeskSection", path: Path) -> None:
    from pipeline.desk.access import ProxyAccess, uid_of
    from pipeline.desk.server import unix_socket

    if settings.host is None or settings.proxy_user is None:
        raise UsageError(Sentence("cli.socket_needs_desk_settings"))
    uid = uid_of(settings.proxy_user)
    if uid is None:
        raise ConfigurationError(Sentence("cli.no_such_proxy_user", proxy_user=settings.proxy_user))
    listening = unix_socket(path)
    _serve(
        home,
        settings,
        ProxyAccess(settings, uid),
        listening,
        lambda: notify(Sentence("cli.desk_listens", path=path)),
    )


def _serve(
    home: "DeskHome",
    settings: "DeskSection",
    access: "Access",
    listening: "socket",
    started: Callable[[], None],
) -> None:
    from pipeline.desk.context import Context
    from pipeline.desk.server import run
    from pipeline.files.memory import give_freed_memory_back

    context = Context(
        home=home,
        settings=settings,
        access=access,
        clock=now,
        chance=lambda: secrets.token_hex(5),
        child_environment={**os.environ},
    )

    # The desk runs for weeks, so memory held by cycles and idle threads must be freed.
    give_freed_memory_back()
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER)

    def on_stop(stop: Callable[[], None]) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop())

    run(context, listening, started, on_stop)


def _usual_home() -> Path:
    from platformdirs import user_data_path

    from pipeline.files.private import user_folder

    return user_folder(user_data_path) / "desk"


def _token() -> str:
    return secrets.token_urlsafe(32)


def _link(home: "DeskHome", name: str, address: str) -> str:
    from pipeline.desk.access import new_link
    from pipeline.runs.folder import decider

    token = _token()
    new_link(home.path, decider(name), token, time.time())
    return f"http://127.0.0.1:{address}/enter?token={token}"


def _running(home: "DeskHome") -> str:
    try:
        return (home.path / _ADDRESS).read_text()
    except OSError:
        raise UsageError(Sentence("cli.new_link_without_desk", path=home.path)) from None


def _opening_page(home: "DeskHome", link: str) -> Path:
    """Write a file that opens the link in a browser: command lines are visible to other users."""
    from pipeline.files.atomic import write_atomically

    path = home.path / _OPENING
    with write_atomically(path) as file:
        refresh = f'<meta http-equiv="refresh" content="0; url={link}">'
        page = (
            f'<!doctype html><meta charset="utf-8"><title>The desk</title>{refresh}<a href="{link}">Open</a>'
        )
        file.write(page.encode())
    return path
