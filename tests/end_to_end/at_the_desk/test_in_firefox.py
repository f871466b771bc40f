"""The main way at the desk in a second browser engine, from the upload to the released file."""

import asyncio
import csv
from pathlib import Path

import pytest
from firefox import FIREFOX, firefox
from visitors import REVIEWED

MIXED = Path(__file__).resolve().parents[3] / "sample_data" / "payments_mixed.csv"

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(FIREFOX is None, reason="no Firefox on PATH; `make tools` installs it"),
]


def test_the_main_way_in_another_engine(tmp_path, serve_desk):
    file = tmp_path / "november.csv"
    file.write_bytes(MIXED.read_bytes().replace(b"name,", b"wer,", 1))
    with serve_desk(tmp_path, profiles=REVIEWED) as desk:
        asyncio.run(main_way(desk, tmp_path, file))
        with (tmp_path / "downloads" / "release.simulated.csv").open(
            newline="", encoding="utf-8-sig"
        ) as lines:
            released = {row["payment_id"] for row in csv.DictReader(lines)}
        assert "PAY-0010" in released
        [approved] = [entry for entry in desk.audit() if entry["deed"] == "approved"]
        assert approved["run"] in {entry["run"] for entry in desk.audit() if entry["deed"] == "started"}
        assert [entry["deed"] for entry in desk.audit()].count("started") == 1


async def main_way(desk, folder, file):
    async with firefox(folder) as browser:
        await browser.open(desk.link)  # which posts its token by itself
        await browser.until("location.pathname === '/' && document.readyState === 'complete'")
        await browser.choose_file("#file", file)
        await browser.click("button", "Upload")
        await browser.until("location.pathname.endsWith('/columns') && document.readyState === 'complete'")
        assert "cannot be read" in await browser.ask("document.body.innerText")
        await browser.ask("document.querySelector('select[name=\"column:wer\"]').value = 'name'")
        await browser.click("button", "Read it this way")  # and look at it before there is a plan
        await browser.until("document.body.innerText.includes('Looks right')")
        await browser.click("button", "Looks right: continue to the plan")
        await browser.until("location.pathname.endsWith('/plan') && document.readyState === 'complete'")
        await browser.click("button", "Start the check", times=2)
        await browser.until("location.pathname.endsWith('/review') && document.readyState === 'complete'")
        await browser.click("#row-10 summary")
        await browser.click("#row-10 input[value=release]")
        await browser.click("#row-10 input[name=reason]")
        await browser.type("paid every month")
        await browser.click("#row-10 button")
        await browser.until("document.querySelector('#row-10.decided') !== null")
        said = await browser.ask("document.querySelector('#row-10 .said').innerText")
        assert said.startswith("Release: ")
        assert await browser.ask("document.activeElement.closest('tr').id") == "row-10"
        await browser.click("button", "Review done")
        await browser.until("location.pathname.endsWith('/release') && document.readyState === 'complete'")
        await browser.click("button", "Approve and write the files")
        await browser.until("document.body.innerText.includes('Payments to release')")
        await browser.click("a", "Payments to release")
        await browser.downloaded("release.simulated.csv")
        await browser.click("button", "Verify the evidence")
        await browser.until("document.body.innerText.includes('Nothing was changed.')")
