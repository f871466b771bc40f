"""A limit of open files that is too low for connections: said before anything is begun."""

import pytest
from refusals import said

FEW = ("sh", "-c", 'ulimit -n 20; exec "$@"', "sh")
ENOUGH = ("sh", "-c", 'ulimit -n 32; exec "$@"', "sh")
COMMANDS = {
    "run": ("payments.csv",),
    "worker": ("--work", "work", "--profile", "sandbox"),
    "doctor": (),
    "sandbox": ("--port", "0"),
    "desk": ("--no-browser",),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_with_connections_needs_some_open_files(name, desk):
    refused = desk(name, *COMMANDS[name], prefix=FEW)

    assert refused.status == 78, refused.err
    [sentence] = refused.sentences
    assert said("files.too_few_open_files", allowed=20, needed=32) in sentence


def test_as_many_as_are_needed_are_enough(desk, network_payments):
    assert desk("run", desk.payments(network_payments(2)), prefix=ENOUGH).status == 0
