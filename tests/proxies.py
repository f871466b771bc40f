"""A network whose only way out is a proxy: tinyproxy of Debian, which asks for a user and a password."""

import shutil
import socket
import subprocess
from contextlib import contextmanager

from desk import COMMAND_MAX_S, hold_until
from nginx import free_port

TINYPROXY = shutil.which("tinyproxy")
CONF = """Port {port}
Listen 127.0.0.1
Timeout 60
LogLevel Connect
BasicAuth us hush
ConnectPort {allowed}
"""


@contextmanager
def tinyproxy(folder, allowed):
    """The proxy, which lets its user connect to one port: its own port, and what it has logged so far."""
    port, log = free_port(), folder / "tinyproxy.log"
    (folder / "tinyproxy.conf").write_text(CONF.format(port=port, allowed=allowed))
    with log.open("w") as said:
        process = subprocess.Popen(
            [TINYPROXY, "-d", "-c", folder / "tinyproxy.conf"], stdout=said, stderr=said
        )
    try:
        hold_until(lambda: answers(port))
        yield port, log.read_text
    finally:
        process.terminate()
        process.wait(COMMAND_MAX_S)


def answers(port):
    """Whether something listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def port_of(sandbox):
    """Of a sandbox that is served."""
    return int(sandbox.url.rpartition(":")[2])
