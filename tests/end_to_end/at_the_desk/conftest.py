"""A desk for the tests of one module."""

import pytest


@pytest.fixture(scope="module")
def desk_here(tmp_path_factory):
    """A desk at which close matches are to be looked at."""
    from visitors import served_desk

    folder = tmp_path_factory.mktemp("desk")
    config = folder / "review.toml"
    config.write_text('[profiles.sandbox.policy]\nclose_match = "review"\n')
    with served_desk(folder, "--config", config) as running:
        yield running
