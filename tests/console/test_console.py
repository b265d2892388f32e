"""The console of holdfast serve in a real browser. One server with hostile data, one browser; a worker takes events as long as a test lets it.

Screenshots are kept in SCREENSHOTS. axe-core comes from npm into BUILD when the test runs.
"""

import base64
import json
import os
import pty
import re
import signal
import subprocess
import tempfile
import threading
import unittest
import urllib.error
import urllib.request
from pathlib import Path

from browser import ENTER, ESCAPE, LONG, Browser, free_port, wait_for

HOLDFAST = os.environ["HOLDFAST"]
BUILD = Path(os.environ["BUILD"])
SCREENSHOTS = Path(os.environ["SCREENSHOTS"])
AXE = "axe-core@4.14.1"

MARKUP = "<img src=x onerror=\"document.title='owned'\">"
BIDI = "abc\u202efed\u2066\u0007\x1b[31m"
LONG_NAME = "x" * 200
PAGES = {
    "overview": "#/", "points": "#/points", "point": "#/points/rates", "outboxes": "#/outbox", "outbox": "#/outbox/orders",
    "parked": "#/outbox/orders/parked", "events": "#/outbox/orders/events", "tickets": "#/outbox/orders/tickets?ticket=t-1&key=order-7",
    "sequences": "#/sequences", "sequence": "#/sequences/order.id", "stores": "#/stores", "store": "#/stores/main", "name": "#/stores/main/rates",
    "instances": "#/instances", "tenants": "#/tenants", "incidents": "#/incidents", "audit": "#/audit", "settings": "#/settings",
    "search": "#/search?q=r", "missing": "#/nothing",
}  # fmt: skip
CONFIG = """
[serve]
label = "production"
[stores.main]
url = "sqlite:{directory}/answers.db"
create-schema = true
[outboxes.orders]
url = "sqlite:{directory}/events.db"
create-schema = true
[sequences]
url = "sqlite:{directory}/ids.db"
create-schema = true
[failover.points.rates]
expiry = "24h"
"""


def fetch_axe():
    """The text of axe-core. npm is asked once for each build directory."""
    file = BUILD / "node_modules/axe-core/axe.min.js"
    if not file.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--prefix", BUILD, "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", AXE]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=5 * LONG)
    return file.read_text()


class Server:
    """holdfast serve with tokens, on a port that it keeps after a restart."""

    def __init__(self, directory):
        self.directory, self.port = Path(directory), free_port()
        self.origin = f"http://127.0.0.1:{self.port}"
        (self.directory / "serve.toml").write_text(CONFIG.format(directory=directory))
        self.admin = self.token("admin")
        self.start()

    def run(self, *words):
        return subprocess.run([HOLDFAST, *words], check=True, capture_output=True, text=True, env=self.environment(), timeout=LONG).stdout

    def environment(self):
        return {**os.environ, "STATE_DIRECTORY": str(self.directory)}

    def token(self, role):
        return self.run("serve", "token", "add", "--role", role).strip()

    def start(self):
        words = [HOLDFAST, "serve", "--config", self.directory / "serve.toml", "--listen", f"127.0.0.1:{self.port}", "--drain", "0s"]
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log, env=self.environment())
        wait_for(self._is_ready, "the start of the server")

    def _is_ready(self):
        assert self.process.poll() is None, (self.directory / "log").read_text()
        try:
            with urllib.request.urlopen(self.origin + "/readyz", timeout=LONG) as answer:
                return answer.status == 200
        except OSError:
            return False

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(LONG)

    def start_session(self):
        content = json.dumps({"token": self.admin}).encode()
        fields = {"Content-Type": "application/json", "Origin": self.origin}
        with urllib.request.urlopen(urllib.request.Request(self.origin + "/v1/session", content, fields), timeout=LONG) as answer:
            return re.match(r"holdfast=([^;]+)", answer.headers["Set-Cookie"])[1]

    def call(self, method, path, body=None, content="application/json", **fields):
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.admin}", "Content-Type": content, **{name.replace("_", "-"): value for name, value in fields.items()}}
        with urllib.request.urlopen(urllib.request.Request(self.origin + path, data, headers, method=method), timeout=LONG) as answer:
            text = answer.read()
            return json.loads(text) if text.startswith((b"{", b"[")) else text.decode()


class Worker(threading.Thread):
    """Delivers events until it is stopped. Those whose type is in `refused` are parked with its error."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.refused, self.stopped = server, {}, threading.Event()

    def run(self):
        while not self.stopped.wait(0.05):
            try:
                self.deliver()
            except (OSError, ValueError):  # the server is away
                continue

    def deliver(self):
        batch = self.server.call("POST", "/v1/outboxes/orders/claims", {"lane": 0, "most": 100, "run": 50})
        if not batch["events"]:
            return
        events = [{"id": event["id"], "key": event.get("key", ""), **self.outcome(event["type"])} for event in batch["events"]]
        self.server.call("POST", "/v1/outboxes/orders/settlements", {"lane": 0, "fence": batch["fence"], "events": events})

    def outcome(self, kind):
        return {"outcome": "permanent", "policy": "skip", "why": self.refused[kind]} if kind in self.refused else {"outcome": "done"}

    def end(self):
        self.stopped.set()
        self.join(LONG)


def fill(server, worker):
    """Data for every page, some of it hostile."""
    for text in ["FR", "DE", MARKUP, BIDI]:
        args = [{"t": "str", "v": text}]
        server.call("POST", "/v1/points/rates/answers", {"args": args, "payload": {"v": text}})
        server.call("POST", "/v1/points/rates/recover", {"args": args, "cause": "failed"})
    for name in ["order.id", "invoice.id"]:
        server.call("POST", f"/v1/sequences/{name}/next", {"count": 3})
    for name in [MARKUP[:50], BIDI]:
        path = "/".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in (name, BIDI * 10))
        server.call("PUT", f"/v1/stores/main/{path}?encoding=base64url", b"{}", Cache_Control="max-age=3600")
    # Types and keys of events cannot have control characters; errors and names of entries can.
    worker.refused = {"order.paid": "HTTP status 422: the total is wrong", MARKUP: MARKUP, "order.bidi": BIDI, LONG_NAME: "y" * 4000, "order.void": "gone"}
    events = [{"type": kind, "key": f"order-{i}", "payload": {"n": i}} for kind in worker.refused for i in range(4)]
    events += [{"type": "order.paid", "key": key, "payload": {}} for key in [MARKUP, LONG_NAME, "order-1"]]
    server.call("POST", "/v1/outboxes/orders/events", events)
    server.call("PUT", "/v1/outboxes/orders/tickets/t-1", {"after": "24h", "event": {"type": "order.reminder", "key": "order-7", "payload": {}}})
    wait_for(lambda: parked(server) == len(events), "the parked events")


def parked(server):
    return server.call("GET", "/v1/outboxes/orders")["parked"]


class Console(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.axe = fetch_axe()
        cls.server = Server(cls.directory.name)
        cls.addClassCleanup(cls.server.stop)
        cls.worker = Worker(cls.server)
        cls.addClassCleanup(cls.worker.end)
        cls.worker.start()
        fill(cls.server, cls.worker)
        # One session for most tests: an address may sign in five times a minute.
        cls.cookie = cls.server.start_session()

    def setUp(self):
        self.browser = Browser()
        self.addCleanup(self.browser.close)
        self.silent = True
        self.addCleanup(self.check_browser)  # before it is closed

    def check_browser(self):
        """Everything that was asked, and what the browser complained about."""
        foreign = [url for url in self.browser.requests() if not url.startswith((self.server.origin + "/", "data:", "about:", "chrome:"))]
        self.assertEqual(foreign, [], "requests to other origins")
        # The browser itself reports each answer 401: how the page learns that nobody has signed in.
        messages = [text for text in self.browser.messages() if not ("/v1/session " in text and " 401 " in text)]
        if self.silent:
            self.assertEqual(messages, [])

    def go(self, page):
        """Opens a page, and waits until its data is there."""
        self.browser.run("location.hash = arguments[0]", page)
        self.wait_for_page()

    def wait_for_page(self):
        script = "const main = document.querySelector('main h1'); return main && !document.querySelector('[aria-busy]') && main.textContent"
        return wait_for(lambda: self.browser.run(script), "the page")

    def sign_in(self, page=""):
        self.browser.open(self.server.origin)
        self.browser.wait_for_text("Token")
        self.browser.set_cookie(name="holdfast", value=self.cookie, path="/", httpOnly=True, sameSite="Strict")
        self.browser.open("about:blank")
        self.browser.open(f"{self.server.origin}/{page}")
        self.wait_for_page()

    def type_token(self, token):
        wait_for(lambda: self.browser.run("return !!document.querySelector('[type=password]')"), "the sign-in page")
        self.browser.run("document.querySelector('[type=password]').focus()")
        self.browser.press(*token, ENTER)

    def violations(self):
        self.browser.run(self.axe + ";window.axe = axe;")
        script = """const done = arguments[arguments.length - 1];
            const words = (each) => `${each.id}: ${each.nodes.map((node) => node.html).join(' ').slice(0, 400)}`;
            axe.run(document).then((result) => done(result.violations.map(words)), (failure) => done([String(failure)]));"""
        return self.browser.run_async(script)

    def test_sign_in_with_a_token_and_out(self):
        self.silent = False  # the wrong token is answered with 401, which the browser reports
        self.browser.open(self.server.origin)
        self.browser.wait_for_text("Token")
        self.assertEqual(self.violations(), [])
        self.browser.screenshot(SCREENSHOTS / "sign-in.png")
        self.type_token("hf_aaaaaaaa_wrong")
        wait_for(lambda: self.browser.run("return !!document.querySelector('[role=alert]')"), "the refusal")
        self.browser.run("location.hash = '#/sequences/order.id'")
        self.type_token(self.server.admin)
        self.browser.wait_for_text("order.id", "production", "admin")
        self.assertEqual(self.browser.run("return document.cookie"), "")
        self.browser.run("[...document.querySelectorAll('button')].find((each) => each.textContent === 'Sign out').click()")
        self.browser.wait_for_text("You have signed out")

    def test_the_link_of_the_first_start_signs_in_once(self):
        with tempfile.TemporaryDirectory() as directory:
            child, terminal = pty.fork()
            if child == 0:
                words = [HOLDFAST, "serve", "--store", "memory:", "--listen", "127.0.0.1:0", "--drain", "0s"]
                os.execve(HOLDFAST, words, {**os.environ, "STATE_DIRECTORY": directory})
            try:
                shown = b""
                while b"ready" not in shown:
                    shown += os.read(terminal, 4096)
                link = re.search(rb"https?://\S+#sign-in=\S+", shown)[0].decode()
                self.browser.open(link)
                self.browser.wait_for_text("Overview", "first-start")
                self.assertNotIn("sign-in", self.browser.run("return location.href + JSON.stringify(history.state)"))
                other = Browser()
                self.addCleanup(other.close)
                other.open(link)
                other.wait_for_text("the link was used")
                self.assertEqual([url for url in self.browser.requests() if "127.0.0.1" not in url and url.startswith("http")], [])
                self.silent = False
            finally:
                os.kill(child, signal.SIGTERM)
                os.waitpid(child, 0)
                os.close(terminal)

    def test_every_page_in_both_schemes(self):
        self.sign_in()
        for scheme in ["light", "dark"]:
            self.browser.scheme(scheme)
            for name, page in PAGES.items():
                with self.subTest(page=name, scheme=scheme):
                    self.go(page)
                    self.assertEqual(self.violations(), [])
                    self.assertNotIn("owned", self.browser.run("return document.title"))
                    self.browser.screenshot(SCREENSHOTS / f"{name}-{scheme}.png")

    def test_every_page_on_a_narrow_screen(self):
        self.browser.resize(320, 800)
        self.sign_in()
        for name, page in PAGES.items():
            with self.subTest(page=name):
                self.go(page)
                self.assertEqual(self.browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth"), 0)
                self.assertEqual(self.violations(), [])
                self.browser.screenshot(SCREENSHOTS / f"{name}-narrow.png")
        self.browser.run("document.querySelector('.menu').click()")
        wait_for(lambda: self.browser.run("return document.querySelector('nav a').offsetParent !== null"), "the menu")

    def test_hostile_data_is_text(self):
        self.sign_in(page="#/outbox/orders/parked")
        self.browser.wait_for_text(MARKUP, "characters)")
        self.assertEqual(self.browser.run("return document.querySelectorAll('main img, main script').length"), 0)
        self.go("#/stores/main")
        self.browser.wait_for_text(MARKUP[:50], "⟨U+202E⟩", "⟨U+0007⟩", "⟨U+001B⟩[31m")
        self.go("#/stores/main/" + urllib.request.quote(BIDI, safe=""))
        self.browser.wait_for_text("abc⟨U+202E⟩fed⟨U+2066⟩⟨U+0007⟩⟨U+001B⟩[31m")
        self.assertEqual(self.browser.run("return document.querySelectorAll('main img, main script').length"), 0)
        event = self.server.call("GET", f"/v1/outboxes/orders/parked?limit=1&type={urllib.request.quote(MARKUP)}")["items"][0]["id"]
        self.go(f"#/outbox/orders/events/{event}")
        self.browser.wait_for_text(MARKUP, "it is parked")
        self.assertEqual(self.violations(), [])
        self.go("#/search?q=" + urllib.request.quote(MARKUP[:50], safe=""))
        self.browser.wait_for_text("Store main", MARKUP[:50])  # the only hit is opened

    def test_a_group_is_replayed_and_another_discarded_by_keyboard_alone(self):
        browser = self.browser
        before = parked(self.server)
        self.sign_in()
        browser.press("g", "o")
        browser.wait_for_text("Outboxes")
        browser.tab_to("main a[href='#/outbox/orders']")
        browser.press(ENTER)
        browser.wait_for_text("Parked events, by type and error", "the total is wrong")
        # First it is refused again: the others stay.
        self.open_dialog("Replay 7 events of the type order.paid")
        browser.screenshot(SCREENSHOTS / "replay-dialog.png")
        self.assertEqual(self.violations(), [])
        self.submit("Replay")
        browser.wait_for_text("Parked again", "the total is wrong", "The others stay parked")
        browser.press(ESCAPE)
        self.assertEqual(parked(self.server), before)
        # Then the receiver takes it, and the rest.
        del self.worker.refused["order.paid"]
        self.open_dialog("Replay 7 events of the type order.paid")
        self.submit("Replay")
        browser.wait_for_text("Delivered:")
        browser.press(ENTER)  # Close has the focus
        browser.wait_for_text("Replay the rest", "The receiver took one event")
        self.submit("Replay the rest")
        browser.wait_for_text("6 events replayed")
        browser.press(ENTER)
        wait_for(lambda: parked(self.server) == before - 7, "the delivery")
        # A wrong name deletes nothing.
        self.open_dialog("Discard 4 events of the type order.void")
        browser.tab_to("dialog input[name=confirm]")
        browser.press(*"wrong")
        self.submit("Discard")
        browser.wait_for_text("Nothing was done")
        self.assertEqual(parked(self.server), before - 7)
        browser.tab_to("dialog input[name=confirm]")
        browser.run("document.activeElement.select()")
        browser.press(*"orders")
        self.submit("Discard")
        browser.wait_for_text("4 events discarded")
        browser.press(ENTER)
        self.assertEqual(parked(self.server), before - 11)
        audit = self.server.call("GET", "/v1/audit?action=outbox.discard")["items"]
        self.assertTrue(audit)

    def open_dialog(self, label):
        wait_for(lambda: self.browser.run("return [...document.querySelectorAll('button')].some((each) => each.ariaLabel === arguments[0])", label), label)
        self.browser.run("document.querySelector('h1').focus()")
        self.browser.tab_to(f'button[aria-label="{label}"]')
        self.browser.press(ENTER)
        wait_for(lambda: self.browser.run("return !!document.querySelector('dialog[open]')"), "the dialog")

    def submit(self, verb):
        self.browser.tab_to("dialog button[type=submit]")
        self.assertEqual(self.browser.run("return document.activeElement.textContent"), verb)
        self.browser.press(ENTER)

    def test_the_page_survives_a_restart_of_the_server(self):
        self.silent = False  # the browser reports refused connections
        self.sign_in(page="#/sequences/order.id")
        self.server.stop(signal.SIGKILL)
        self.browser.wait_for_text("No connection to the server since")
        self.browser.screenshot(SCREENSHOTS / "connection-lost.png")
        self.server.start()
        wait_for(lambda: "No connection" not in self.browser.text(), "the new stream")
        before = self.last_id()
        self.server.call("POST", "/v1/sequences/order.id/next", {"count": 5000})
        self.assertGreater(self.last_id(), before)
        # The next block may be granted meanwhile.
        wait_for(lambda: f"{self.last_id():,}" in self.browser.text(), "the new number on the page")
        self.browser.run("location.reload()")
        self.wait_for_page()
        self.browser.wait_for_text("order.id", "Counter")

    def last_id(self):
        return int(self.server.call("GET", "/v1/sequences/order.id")["last"])

    def test_an_ended_session_says_so_and_the_page_comes_back(self):
        self.silent = False  # the browser reports the answer 401
        operator = self.server.token("operator")
        wait_for(lambda: self.is_accepted(operator), "the new token")
        self.browser.open(self.server.origin + "/#/stores/main")
        self.type_token(operator)
        self.browser.wait_for_text("Doctor", "Names")
        self.assertNotIn("Audit", self.browser.run("return document.querySelector('nav').textContent"))
        self.server.call("DELETE", f"/v1/tokens/{operator[3:11]}")
        self.browser.wait_for_text("Your session has ended")
        self.type_token(self.server.admin)
        self.browser.wait_for_text("Doctor", "Names")

    def is_accepted(self, token):
        """The server reads new tokens once a second."""
        try:
            self.server.call("GET", "/v1/status", Authorization=f"Bearer {token}")
        except urllib.error.HTTPError:
            return False
        return True

    def test_all_tabs_share_one_stream(self):
        self.sign_in()
        self.browser.run("window.open('/#/sequences'); window.open('/#/points')")
        streams = lambda: int(re.search(r"^holdfast_sse_streams (\d+)", self.server.call("GET", "/metrics"), re.M)[1])  # noqa: E731
        wait_for(lambda: streams() == 1, "one stream")
        handles = self.browser._call("GET", self.browser.session + "/window/handles")
        self.assertEqual(len(handles), 3)
        for handle in handles[1:]:
            self.browser._call("POST", self.browser.session + "/window", {"handle": handle})
            # The state comes from the tab that reads.
            wait_for(lambda: "production" in self.browser.run("return document.title"), "the state")
        wait_for(lambda: streams() == 1, "one stream")

    def test_a_chart_is_read_by_keyboard_and_as_a_table(self):
        self.sign_in(page="#/points/rates")
        wait_for(lambda: self.browser.run("return !!document.querySelector('.plot')"), "a chart")
        self.browser.tab_to(".plot")
        self.browser.press("\ue012")
        wait_for(lambda: "live" in self.browser.run("return document.querySelector('.readout').textContent"), "the values")
        self.browser.run("document.querySelector('.as-table summary').click()")
        self.assertGreater(self.browser.run("return document.querySelectorAll('.as-table tbody tr').length"), 1)
        self.assertEqual(self.violations(), [])
        # A page with a mistake is found, so that silence means something. New states redraw what is in `main`.
        self.browser.run("document.body.append(document.createElement('button'))")
        self.assertIn("button-name", "".join(self.violations()))


if __name__ == "__main__":
    unittest.main()
