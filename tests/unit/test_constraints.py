"""What is installed is pinned, to run, to run on many hosts and to develop, by hashes and by no address."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = WRITTEN["project"]
BUILD = WRITTEN["dependency-groups"]["build"]
RUN = PROJECT["dependencies"]
EXTRAS = PROJECT["optional-dependencies"]
OURSELVES = re.compile(r"payee-precheck\[(.+)\]")
"""An extra may ask for others of ours."""


def with_extras(requirements):
    """These requirements, with what our own extras stand for."""
    for text in requirements:
        if ours := OURSELVES.fullmatch(text):
            for extra in ours[1].split(","):
                yield from with_extras(EXTRAS[extra])
        else:
            yield text


DEVELOP = [*RUN, *BUILD, *with_extras(EXTRAS["dev"])]
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
MANY = [*RUN, *(text for extra in ("postgres", "dask", "metrics", "otel") for text in EXTRAS[extra])]
FILES = {
    "constraints.txt": RUN,
    "constraints-build.txt": BUILD,
    "constraints-many.txt": MANY,
    "constraints-dev.txt": DEVELOP,
}
BILL = ROOT / "dist" / "payee-precheck.cdx.json"
each_file = pytest.mark.parametrize("name", FILES)


def pins(name):
    """Package -> its pinned requirement and its hashes, from a file without any other kind of line."""
    text = re.sub(r"^#.*\n", "", (ROOT / name).read_text(), flags=re.MULTILINE)
    found = {}
    for line in text.replace("\\\n", " ").splitlines():
        said, *hashes = re.split(r"\s+(?=--)", line)
        assert all(HASH.fullmatch(one) for one in hashes), line[:80]
        requirement = Requirement(said)
        key = canonicalize_name(requirement.name)
        assert key not in found, key
        found[key] = requirement, frozenset(hashes)
    return found


def needed(requirements):
    """The packages that are needed here for these, with all that they need themselves."""
    left = [(Requirement(text), "") for text in requirements]
    found = set()
    while left:
        requirement, extra = left.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        for wanted in {"", *requirement.extras}:
            if (name, wanted) not in found:
                found.add((name, wanted))
                left += [(Requirement(text), wanted) for text in distribution(name).requires or ()]
    return {name for name, _ in found}


def applies(requirement):
    return requirement.marker is None or requirement.marker.evaluate()


@each_file
def test_every_package_is_pinned_to_one_version_and_known_by_the_hashes_of_its_files(name):
    for requirement, hashes in pins(name).values():
        assert re.fullmatch(r"==[^*,]+", str(requirement.specifier)), str(requirement)
        assert requirement.url is None
        assert hashes, str(requirement)


@each_file
def test_no_address_and_no_place_of_a_machine_is_named(name):
    assert not re.search(r"[/@]|https?:|--(?!hash=)", (ROOT / name).read_text())


@pytest.mark.skipif(
    Path(sys.prefix).name == "lowest", reason="the oldest libraries need others than those pinned"
)
@each_file
def test_what_is_needed_is_pinned_and_nothing_else(name):
    assert {key for key, (requirement, _) in pins(name).items() if applies(requirement)} == needed(
        FILES[name]
    )


@pytest.mark.skipif(
    Path(sys.prefix).name == "lowest", reason="these are the oldest libraries, not those pinned"
)
def test_what_is_installed_is_what_is_pinned():
    differing = {
        key: distribution(key).version
        for key, (requirement, _) in pins("constraints-dev.txt").items()
        if applies(requirement) and distribution(key).version not in requirement.specifier
    }
    assert differing == {}


@each_file
def test_the_pins_keep_to_the_bounds_of_the_project(name):
    found = pins(name)
    for wanted in map(Requirement, FILES[name]):
        [pinned] = found[canonicalize_name(wanted.name)][0].specifier
        assert pinned.version in wanted.specifier, str(wanted)


@pytest.mark.parametrize("name", [name for name in FILES if name != "constraints-dev.txt"])
def test_what_is_developed_with_is_what_is_run(name):
    """Each file is enough by itself; where both name a package, they say the same."""
    run, develop = pins(name), pins("constraints-dev.txt")
    assert run.keys() <= develop.keys()
    for key, (requirement, hashes) in run.items():
        other, its_hashes = develop[key]
        assert (other.specifier, its_hashes) == (requirement.specifier, hashes), key
        assert other.marker in {None, requirement.marker}, (
            f"{key}: a Python that runs it may develop without it"
        )


@pytest.mark.skipif(
    not BILL.exists() or BILL.stat().st_mtime < (ROOT / "constraints.txt").stat().st_mtime,
    reason="no bill of materials of these constraints: make wheel writes it",
)
def test_the_bill_of_materials_lists_what_is_pinned_to_run_with_its_licences_and_no_place_of_this_machine():
    bill = json.loads(BILL.read_text())
    pinned = {
        (key, str(requirement.specifier).removeprefix("=="))
        for key, (requirement, _) in pins("constraints.txt").items()
        if applies(requirement)
    }
    assert {(canonicalize_name(part["name"]), part["version"]) for part in bill["components"]} == pinned
    assert [part["name"] for part in bill["components"] if not part.get("licenses")] == []
    needs = {entry["ref"]: entry.get("dependsOn", []) for entry in bill["dependencies"]}
    named = {canonicalize_name(Requirement(text).name) for text in RUN}
    assert {canonicalize_name(ref.partition("==")[0]) for ref in needs["root-component"]} == named
    assert not re.search(rf"file:|{re.escape(str(ROOT))}", BILL.read_text())


@pytest.mark.parametrize("name", ["Dockerfile", "Makefile"])
def test_nothing_is_installed_without_a_hash(name):
    text = (ROOT / name).read_text().replace("\\\n", " ")
    commands = [
        found for line in text.splitlines() for found in re.findall(r"\bpip .*?\binstall\b[^&]*", line)
    ]
    assert commands
    unknown = [one for one in commands if "--require-hashes" not in one and "--no-index" not in one]
    # The oldest libraries are looked for, and sslyze, which one test needs, has an environment of its own.
    assert [one for one in unknown if "--resolution lowest" not in one and "sslyze" not in one] == []


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(("target", "folder"), [("lowest", "LOWEST"), ("wheel", "RUN_ONLY")])
def test_an_environment_that_was_begun_and_not_finished_is_made_anew(tmp_path, target, folder):
    planned = subprocess.run(
        ["make", "--dry-run", target, f"{folder}={tmp_path}"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "-m venv --clear" in planned.stdout
    assert f"{tmp_path}/bin/python" in planned.stdout
