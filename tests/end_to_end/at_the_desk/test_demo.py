"""A desk to look around in."""

import signal
import subprocess
import sys
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from refusals import said

from pipeline.desk.folders import DeskHome
from pipeline.desk.states import State, status_of
from schemas.desk import Deed


def test_a_demo_has_five_files_in_five_states_and_is_deleted_when_it_ends(tmp_path):
    words = [sys.executable, "-I", "-m", "payee_precheck", "desk", "--demo", "--no-browser", "--port", "0"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "LANG": "de_DE"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, cwd=tmp_path, text=True) as process:
        link = process.stdout.readline()
        assert link.startswith("http://127.0.0.1:")
        [path] = tmp_path.glob("precheck-demo-*")
        found = [status_of(folder) for folder in DeskHome(path).folders()]
        [approved] = [one for one in DeskHome(path).audit.entries() if one.deed is Deed.APPROVED]
        decided = [at for at in found if at.folder.decisions.entries()]
        with pytest.raises(HTTPError) as stranger:  # also a page about no file
            urlopen(link.partition("?")[0].removesuffix("enter"))
        assert "<strong>Simulated</strong>" in stranger.value.read().decode()
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    states = [State.RELEASED, State.WAITING, State.REVIEW, State.PLANNED, State.NEW]
    assert sorted(at.state for at in found) == sorted(states)
    assert len({at.file.sha256 for at in found}) == len(found)
    assert all(at.summary.simulated for at in found if at.summary)
    assert {at.file.language for at in found} == {"de"}
    assert {at.state for at in decided} == {State.RELEASED, State.WAITING}
    assert approved.facts.keys() == {"released_count", "money", "sha256"}  # as of an approval on its page
    assert not path.exists()


def test_a_demo_has_a_home_of_its_own(tmp_path):
    words = [sys.executable, "-I", "-m", "payee_precheck", "desk", "--demo", "--home", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said("cli.demo_uses_own_folder") in done.stderr
