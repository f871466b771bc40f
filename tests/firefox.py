"""Firefox, driven by WebDriver BiDi, which it speaks by itself: no driver beside it.

Selenium needs geckodriver, which Debian does not have, and Playwright drives a Firefox of its own.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import aiohttp

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
WAIT_MAX_S = 60
LOOK_INTERVAL_S = 0.05
PREFERENCES = {
    "browser.shell.checkDefaultBrowser": False,
    "app.normandy.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "browser.safebrowsing.downloads.enabled": False,
    "services.settings.server": "data:,",
}
"""So that it asks no server of its own for anything."""


class BrowserError(Exception):
    """Firefox did not do it."""


@dataclass
class Firefox:
    """A window of Firefox."""

    socket: aiohttp.ClientWebSocketResponse
    downloads: Path
    window: str = ""

    def __post_init__(self):
        self._numbers = count(1)

    async def send(self, method, **parameters):
        """One command, and what came of it; events are not listened for."""
        number = next(self._numbers)
        await self.socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(WAIT_MAX_S):
            while (message := await self.socket.receive_json()).get("id") != number:
                pass
        if message["type"] == "error":
            raise BrowserError(f"{method}: {message['message']}")
        return message["result"]

    async def open(self, url):
        await self.send("browsingContext.navigate", context=self.window, url=url, wait="complete")

    async def ask(self, script):
        """What an expression is in the page, as JSON."""
        found = await self.send(
            "script.evaluate",
            expression=f"JSON.stringify({script})",
            target={"context": self.window},
            awaitPromise=True,
        )
        if found["type"] == "exception":
            raise BrowserError(found["exceptionDetails"]["text"])
        return json.loads(found["result"].get("value", "null"))

    async def until(self, script):
        """Look at the page until an expression holds there."""
        async with asyncio.timeout(WAIT_MAX_S):
            while True:
                try:
                    if found := await self.ask(script):
                        return found
                except BrowserError:
                    pass  # the next page is being loaded
                await asyncio.sleep(LOOK_INTERVAL_S)

    async def node(self, css, text=""):
        """The element of that kind that has this text, as the protocol names it."""
        found = await self.send(
            "browsingContext.locateNodes", context=self.window, locator={"type": "css", "value": css}
        )
        for node in found["nodes"]:
            reference = {"sharedId": node["sharedId"]}
            said = await self.send(
                "script.callFunction",
                functionDeclaration="e => { e.scrollIntoView({ block: 'center' }); return e.innerText }",
                arguments=[reference],
                target={"context": self.window},
                awaitPromise=False,
            )
            if text in said["result"].get("value", ""):
                return reference
        raise BrowserError(f"no {css} with {text!r}")

    async def click(self, css, text="", *, times=1):
        """With the mouse, where it is on the screen."""
        await self.until(f"document.querySelector({json.dumps(css)}) !== null")
        where = {"type": "element", "element": await self.node(css, text)}
        press = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        await self.send(
            "input.performActions",
            context=self.window,
            actions=[
                {
                    "type": "pointer",
                    "id": "mouse",
                    "actions": [{"type": "pointerMove", "x": 0, "y": 0, "origin": where}, *press * times],
                }
            ],
        )

    async def type(self, text):
        """Into what has the focus."""
        keys = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        await self.send(
            "input.performActions",
            context=self.window,
            actions=[{"type": "key", "id": "keys", "actions": keys}],
        )

    async def choose_file(self, css, path):
        await self.send(
            "input.setFiles", context=self.window, element=await self.node(css), files=[str(path)]
        )

    async def downloaded(self, name):
        """Wait until a file is there: it has another name until it is whole."""
        async with asyncio.timeout(WAIT_MAX_S):
            while not (self.downloads / name).exists():  # noqa: ASYNC110 (a file has no event)
                await asyncio.sleep(LOOK_INTERVAL_S)


@asynccontextmanager
async def firefox(folder):
    """A window of Firefox with a profile of its own; what it downloads lands in `folder`/downloads."""
    profile, downloads = folder / "profile", folder / "downloads"
    profile.mkdir()
    downloads.mkdir()
    lines = [f'user_pref("{name}", {json.dumps(value)});\n' for name, value in PREFERENCES.items()]
    (profile / "user.js").write_text("".join(lines))
    with subprocess.Popen(  # noqa: ASYNC220 (nothing else waits in this loop)
        [FIREFOX, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"],
        env={"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said = (re.search(r"BiDi listening on (ws://\S+)", line) for line in process.stderr)
            address = next(found[1] for found in said if found)
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(f"{address}/session", max_msg_size=0) as socket,
            ):
                browser = Firefox(socket, downloads)
                await browser.send("session.new", capabilities={})
                tree = await browser.send("browsingContext.getTree")
                browser.window = tree["contexts"][0]["context"]
                allowed = {"type": "allowed", "destinationFolder": str(downloads)}
                await browser.send("browser.setDownloadBehavior", downloadBehavior=allowed)
                yield browser
        finally:
            os.killpg(process.pid, signal.SIGKILL)
