"""Drives Debian's Chromium over W3C WebDriver, which is JSON over HTTP: nothing but the standard library and chromium-driver."""

import base64
import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

LONG = int(os.environ.get("HOLDFAST_TEST_LONG", "60"))  # seconds: never reached when all is well
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
ENTER, TAB, ESCAPE = "\ue007", "\ue004", "\ue00c"


def wait_for(condition, what, limit=LONG):
    """Polls until the condition is true, and returns it."""
    end = time.monotonic() + limit
    while not (result := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen")
        time.sleep(0.05)
    return result


def free_port():
    """A port below those that the system gives to clients, which could take it before a server does, or between two servers."""
    for port in random.sample(range(10_000, 22_768), 1_000):
        with contextlib.suppress(OSError), contextlib.closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port")


class Browser:
    """A browser with one tab, an empty profile, and a log of its requests and of its messages."""

    def __init__(self, width=1280, height=900):
        self.profile = tempfile.mkdtemp(prefix="holdfast-console-")
        self.port = free_port()
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}", "--log-level=SEVERE"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(self._is_up, "chromedriver")
            chrome = {"binary": "/usr/bin/chromium", "args": [*FLAGS, f"--user-data-dir={self.profile}", f"--window-size={width},{height}"]}
            logs = {"browser": "ALL", "performance": "ALL"}
            wanted = {"browserName": "chrome", "goog:chromeOptions": chrome, "goog:loggingPrefs": logs, "timeouts": {"script": 2_000 * LONG, "pageLoad": 2_000 * LONG}}
            self.session = "/session/" + self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
            self.resize(width, height)
        except BaseException:
            self.close()
            raise

    def _is_up(self):
        try:
            return self._call("GET", "/status")["ready"]
        except OSError:
            return False

    def _call(self, method, path, body=None):
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", content, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=3 * LONG) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as failure:
            raise AssertionError(failure.read().decode()[:1000]) from None

    def _devtools(self, command, **parameters):
        return self._call("POST", self.session + "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def close(self):
        if hasattr(self, "session"):
            with contextlib.suppress(Exception):
                self._call("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait(LONG)
        shutil.rmtree(self.profile, ignore_errors=True)

    def open(self, url):
        self._call("POST", self.session + "/url", {"url": url})

    def set_cookie(self, **cookie):
        self._call("POST", self.session + "/cookie", {"cookie": cookie})

    def run(self, script, *arguments):
        return self._call("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        return self._call("POST", self.session + "/execute/async", {"script": script, "args": list(arguments)})

    def press(self, *keys):
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._call("POST", self.session + "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def text(self):
        return self.run("return document.body.innerText")

    def wait_for_text(self, *texts):
        try:
            wait_for(lambda: all(text in self.text() for text in texts), f"{texts} on the page")
        except AssertionError as failure:
            raise AssertionError(f"{failure}; the page says: {self.text()[:2000]}") from None

    def tab_to(self, selector, most=200):
        """Moves the focus with the tabulator key alone."""
        for _ in range(most):
            if self.run("return document.activeElement.matches(arguments[0])", selector):
                return
            self.press(TAB)
        raise AssertionError(f"the tabulator key does not reach {selector}")

    def scheme(self, name):
        self._devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def resize(self, width, height):
        self._devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def screenshot(self, file):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(self._call("GET", self.session + "/screenshot")))

    def messages(self):
        """What the console of the browser said since the last call."""
        return [entry["message"] for entry in self._call("POST", self.session + "/se/log", {"type": "browser"})]

    def requests(self):
        """The addresses that were asked since the last call."""
        entries = [json.loads(entry["message"])["message"] for entry in self._call("POST", self.session + "/se/log", {"type": "performance"})]
        return [entry["params"]["request"]["url"] for entry in entries if entry["method"] == "Network.requestWillBeSent"]
