"""The console of holdfast serve in a real browser. One server with hostile data; a worker takes events as long as a test lets it.

Screenshots are kept in SCREENSHOTS. axe-core comes from npm into BUILD when the test runs.
"""

import base64
import contextlib
import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request
from pathlib import Path

from browser import ENTER, ESCAPE, LONG, Browser, wait_for
from server import HOLDFAST, Instances, Server, Worker

BUILD = Path(os.environ["BUILD"])
SCREENSHOTS = Path(os.environ["SCREENSHOTS"])
AXE = "axe-core@4.14.1"

MARKUP = "<img src=x onerror=\"document.title='owned'\">"
BIDI = "abc\u202efed\u2066\u0007\x1b[31m"
LONG_NAME = "x" * 200
SHOWN_BIDI = "abc⟨U+202E⟩fed⟨U+2066⟩⟨U+0007⟩⟨U+001B⟩[31m"
HUGE = "z" * 65_536
INCIDENT = "2026-11-15-01"
PAGES = {
    "overview": "#/", "points": "#/points", "point": "#/points/rates", "outboxes": "#/outbox", "outbox": "#/outbox/orders",
    "parked": "#/outbox/orders/parked", "events": "#/outbox/orders/events", "tickets": "#/outbox/orders/tickets?ticket=t-1&key=order-7",
    "sequences": "#/sequences", "sequence": "#/sequences/order.id", "stores": "#/stores", "store": "#/stores/main", "name": "#/stores/main/rates",
    "instances": "#/instances", "tenants": "#/tenants", "incidents": "#/incidents", "audit": "#/audit", "settings": "#/settings",
    "search": "#/search?q=r", "missing": "#/nothing", "incident": f"#/incidents/{INCIDENT}",
    "instance": "#/instances/web-1:17",
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
TENANTS = """
[stores.main]
url = "sqlite:{directory}/answers.db"
create-schema = true
[failover.store.multitenant]
enabled = true
[failover.store.multitenant.tenants.acme]
table-prefix = "ACME_"
[failover.store.multitenant.tenants."<img src=x>"]
table-prefix = "IMG_"
"""


def fetch_axe():
    """The text of axe-core. npm is asked once for each build directory."""
    file = BUILD / "node_modules/axe-core/axe.min.js"
    if not file.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--prefix", BUILD, "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", AXE]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=5 * LONG)
    return file.read_text()


def fill(server, worker):
    """Data for every page, some of it hostile."""
    for text in ["FR", "DE", MARKUP, BIDI]:
        args = [{"t": "str", "v": text}]
        server.call("POST", "/v1/points/rates/answers", {"args": args, "payload": {"v": text}})
        server.call("POST", "/v1/points/rates/recover", {"args": args, "cause": "failed"})
    for name in ["order.id", "invoice.id", "refund.id"]:
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
    # Other processes name their points as they like.
    hostile = [{"name": name, "breaker": "closed", "numbers": {"started": 1}} for name in [MARKUP, BIDI, HUGE]]
    Instances(server.directory / "answers.db").report(("web-1:17", hostile), (BIDI, []), (MARKUP[:100], []))


def plant_incident(server):
    """An incident of the past, as the server keeps it, with hostile subjects. The server reads it when it starts."""
    entries = [("begin", "point rates", MARKUP), ("action", MARKUP, BIDI), ("note", BIDI, HUGE[:900]), ("end", "point rates", "")]
    timeline = [{"at": f"2026-11-15T10:00:0{i}Z", "kind": kind, "subject": subject, "text": text} for i, (kind, subject, text) in enumerate(entries)]
    body = {"id": INCIDENT, "opened": "2026-11-15T10:00:00Z", "closed": "2026-11-15T10:05:00Z", "subjects": ["point rates", f"point {MARKUP}"], "timeline": timeline, "leftOut": 0}
    text = json.dumps(body)
    server.stop()
    with contextlib.closing(sqlite3.connect(server.directory / "serve.db", isolation_level=None)) as database:
        rows = [(INCIDENT, i, 1_763_200_800_000_000, text[i * 1_000 : (i + 1) * 1_000]) for i in range(len(text) // 1_000 + 1)]
        database.executemany("INSERT INTO HOLDFAST_SERVE_INCIDENT (INCIDENT_ID, LINE_NUMBER, OPENED_ON, BODY) VALUES (?, ?, ?, ?)", rows)
    server.start()


def parked(server):
    return server.call("GET", "/v1/outboxes/orders")["parked"]


class Console(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.axe = fetch_axe()
        cls.server = Server(cls.directory.name, CONFIG.format(directory=cls.directory.name))
        cls.addClassCleanup(cls.server.stop)
        cls.worker = Worker(cls.server)
        cls.addClassCleanup(cls.worker.end)
        cls.worker.start()
        plant_incident(cls.server)
        fill(cls.server, cls.worker)
        # Pages of single things, whose names are known now.
        event = cls.server.call("GET", "/v1/outboxes/orders/parked?limit=1&type=order.bidi")["items"][0]["id"]
        entry = cls.server.call("GET", "/v1/points/rates/entries?limit=1")["items"][0]["key"]
        answer = cls.server.call("GET", "/v1/decisions?point=rates&limit=1")["items"][0]["ref"]
        cls.pages = {**PAGES, "event": f"#/outbox/orders/events/{event}", "entry": f"#/points/rates/{entry}", "answer": f"#/explain/{answer}"}
        # One session for most tests: an address may sign in five times a minute.
        cls.cookie = cls.server.start_session()

    def setUp(self):
        self.browser = Browser()
        self.addCleanup(self.browser.close)
        self.silent = True
        self.origins = [self.server.origin + "/"]
        self.addCleanup(self.check_browser)  # before it is closed

    def check_browser(self):
        """Everything that was asked, and what the browser complained about."""
        foreign = [url for url in self.browser.requests() if not url.startswith((*self.origins, "data:", "about:", "chrome:"))]
        self.assertEqual(foreign, [], "requests to other origins")
        # The browser itself reports each answer 401: how the page learns that nobody has signed in.
        # And an answer 404: how the page of an event learns that the event was delivered or discarded.
        known = [("/v1/session ", " 401 "), ("/explain ", " 404 ")]
        messages = [text for text in self.browser.messages() if not any(path in text and status in text for path, status in known)]
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
        viewer = self.server.token("viewer")
        wait_for(lambda: self.is_accepted(viewer), "the new token")
        self.type_token(viewer)
        self.browser.wait_for_text("order.id", "production", "viewer", "Counter")
        # What a viewer may not do is not offered.
        for name, page in self.pages.items():
            with self.subTest(page=name):
                if name != "audit":
                    self.go(page)
                    buttons = self.browser.run("return [...document.querySelectorAll('main button')].map((each) => each.textContent)")
                    self.assertEqual([each for each in buttons if each.endswith("…") or "payload" in each], [])
        self.assertNotIn("Audit", self.browser.run("return document.querySelector('nav').textContent"))
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
                self.origins.append(link.partition("#")[0])
                self.browser.open(link)
                self.browser.wait_for_text("Overview", "first-start")
                self.assertNotIn("sign-in", self.browser.run("return location.href + JSON.stringify(history.state)"))
                other = Browser()
                self.addCleanup(other.close)
                other.open(link)
                other.wait_for_text("the link was used")
                self.silent = False
            finally:
                os.kill(child, signal.SIGTERM)
                os.waitpid(child, 0)
                os.close(terminal)

    def test_every_page_in_both_schemes(self):
        self.sign_in()
        for scheme in ["light", "dark"]:
            self.browser.scheme(scheme)
            for name, page in self.pages.items():
                with self.subTest(page=name, scheme=scheme):
                    self.go(page)
                    self.assertEqual(self.violations(), [])
                    self.assertNotIn("owned", self.browser.run("return document.title"))
                    self.browser.screenshot(SCREENSHOTS / f"{name}-{scheme}.png")

    def test_every_page_on_a_narrow_screen(self):
        self.browser.resize(320, 800)
        self.sign_in()
        for name, page in self.pages.items():
            with self.subTest(page=name):
                self.go(page)
                self.assertEqual(self.browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth"), 0)
                self.assertEqual(self.violations(), [])
                self.browser.screenshot(SCREENSHOTS / f"{name}-narrow.png")
        self.browser.run("document.querySelector('.menu').click()")
        wait_for(lambda: self.browser.run("return document.querySelector('nav a').offsetParent !== null"), "the menu")

    def shows(self, page, *texts):
        """Opens a page that has hostile data, which must be there as text, and nowhere as an element."""
        self.go(page)
        self.browser.wait_for_text(*texts)
        self.assertEqual(self.browser.run("return document.querySelectorAll('main img, main script, main iframe').length"), 0)
        self.assertNotEqual(self.browser.run("return document.title"), "owned")
        # No text is so long that a reader has to search for what is behind it, and none hides in another direction.
        self.assertEqual(self.browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth"), 0)
        self.assertLess(self.browser.run("return Math.max(...[...document.querySelectorAll('bdi')].map((each) => each.textContent.length))"), 6_000)
        self.assertNotRegex(self.browser.text(), "[\u202a-\u202e\u2066-\u2069\u0007\u001b]")

    def test_hostile_points_and_instances_are_text(self):
        self.sign_in()
        self.shows("#/points", MARKUP, SHOWN_BIDI, "(65,536 characters)")
        self.shows("#/points/" + urllib.request.quote(MARKUP, safe=""), MARKUP)
        self.shows("#/points/" + urllib.request.quote(BIDI, safe=""), SHOWN_BIDI)
        self.shows("#/points/" + HUGE[:30_000], "(30,000 characters)")
        self.shows("#/instances", SHOWN_BIDI, MARKUP[:100])
        self.shows("#/", SHOWN_BIDI)

    def test_hostile_names_and_keys_of_entries_are_text(self):
        self.sign_in()
        self.shows("#/stores/main", MARKUP[:50], SHOWN_BIDI)
        self.shows("#/stores/main/" + urllib.request.quote(BIDI, safe=""), SHOWN_BIDI)
        # A name, and a point of another process.
        self.shows("#/search?q=" + urllib.request.quote(MARKUP[:50], safe=""), MARKUP[:50], "store main", "point")
        self.go("#/search?q=invoice.id")
        self.browser.wait_for_text("Counter")  # the only hit is opened

    def test_hostile_types_and_keys_of_events_are_text(self):
        for member in ["type", "key"]:
            for text in [HUGE, BIDI]:
                event = {"type": "t", "key": "k", "payload": {}, member: text}
                with self.assertRaises(urllib.error.HTTPError) as refusal:
                    self.server.call("POST", "/v1/outboxes/orders/events", event)
                self.assertEqual(refusal.exception.code, 400)
        # So they can be there only if another program wrote them.
        event = self.server.call("GET", f"/v1/outboxes/orders/parked?limit=1&type={LONG_NAME}")["items"][0]["id"]
        with contextlib.closing(sqlite3.connect(self.server.directory / "events.db", timeout=LONG, isolation_level=None)) as database:
            [(table,)] = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%\\_OUTBOX' ESCAPE '\\'")
            database.execute(f'UPDATE "{table}" SET EVENT_KEY = ? WHERE ID = ?', (MARKUP + HUGE, event))
            database.execute(f'UPDATE "{table}_ENTRY" SET ENTRY = REPLACE(ENTRY, ?, ?) WHERE ID = ?', (LONG_NAME, "\u202e" + HUGE, event))
        self.sign_in()
        self.shows("#/outbox/orders/parked", MARKUP, "characters)")
        self.shows(f"#/outbox/orders/events/{event}", event)
        other = self.server.call("GET", f"/v1/outboxes/orders/parked?limit=1&type={urllib.request.quote(MARKUP)}")["items"][0]["id"]
        self.shows(f"#/outbox/orders/events/{other}", MARKUP, "it is parked")

    def test_hostile_errors_are_text(self):
        self.sign_in()
        self.shows("#/outbox/orders", MARKUP, SHOWN_BIDI, "characters)")
        # The group with the longest error has a page, and a dialog.
        self.browser.run("[...document.querySelectorAll('main tbody a')].find((each) => each.textContent.startsWith('yyy')).click()")
        wait_for(lambda: "Matching: 4 events" in self.browser.text(), "the events of the group")
        self.browser.run("document.querySelector('button[aria-label^=Discard]').click()")
        self.browser.wait_for_text("they are deleted and never delivered", "4 events")
        self.assertEqual(self.violations(), [])

    def test_hostile_incidents_are_text(self):
        self.sign_in()
        self.shows(f"#/incidents/{INCIDENT}", MARKUP, SHOWN_BIDI, "zzz")
        self.shows("#/incidents", MARKUP)

    def test_hostile_tenants_are_text(self):
        with tempfile.TemporaryDirectory() as directory:
            server = Server(directory, TENANTS.format(directory=directory))
            self.addCleanup(server.stop)
            name = "<img src=x>"
            self.assertEqual([each["tenant"] for each in server.call("GET", "/v1/tenants")["items"]], sorted([name, "acme"]))
            with self.assertRaises(urllib.error.HTTPError) as refusal:
                server.call("GET", f"/v1/tenants/{HUGE[:6_000]}")
            self.assertEqual(refusal.exception.code, 404)
            own, self.server, self.cookie = self.server, server, server.start_session()
            self.origins.append(server.origin + "/")
            self.sign_in()
            for page in ["#/tenants", "#/tenants/" + urllib.request.quote(name, safe=""), "#/tenants/acme"]:
                self.shows(page, name if "img" in page or page == "#/tenants" else "acme")
                self.assertEqual(self.violations(), [])
            self.browser.open("about:blank")
            self.server = own

    def test_every_action_says_what_it_does_and_is_recorded(self):
        """Each action: the page, the button, the values, what the dialog and the result say, and the name in the audit log."""
        event = self.server.call("GET", "/v1/outboxes/orders/parked?limit=2&type=order.bidi")["items"]
        sold, lost = (f"#/outbox/orders/events/{each['id']}" for each in event)
        entry = self.server.call("GET", "/v1/points/rates/entries?limit=1")["items"][0]["key"]
        actions = [
            ("#/outbox/orders", "Pause…", {}, "All 1 lane", "Nothing is delivered until", "outbox.pause"),
            ("#/outbox/orders", "Resume…", {}, "Pending: ", "Workers get events again", "outbox.resume"),
            ("#/outbox/orders", "Check…", {}, "events of orders", "Done: ", "outbox.check"),
            ("#/outbox/orders", "Check…", {"repair": "yes"}, "A repair changes", "repaired", "outbox.repair"),
            (sold, "Replay…", {}, "is delivered again", "replayed, it is due again", "outbox.replay"),
            (lost, "Discard…", {"confirm": "orders"}, "This is final", "discarded", "outbox.discard"),
            ("#/points/rates", "Invalidate…", {"key": entry}, "one key", "has no answer now", "point.invalidate"),
            ("#/points/rates", "Drill…", {"percent": "5"}, "For a part of the calls", "The drill runs until", "point.drill"),
            ("#/points/rates", "End the drill", {}, "All calls ask the upstream", "0 calls got a kept answer", "point.drill.end"),
            ("#/stores/main", "Clean now…", {}, "have expired are deleted: 0", "0 expired entries removed", "store.clean"),
            ("#/sequences/invoice.id", "Skip ids…", {"id": "900000"}, "no id up to this one", "Done. The last id is", "sequence.ensure"),
            ("#/sequences/refund.id", "Reset…", {"next": "1000000", "confirm": "refund.id"}, "can repeat", "The next block begins at 1,000,000", "sequence.reset"),
            (f"#/incidents/{INCIDENT}", "Add a note…", {"text": "the vendor knows"}, "with your name", "Added", "incident.note"),
            ("#/settings", "Add a token…", {"name": "ci"}, "shown once", "hf_", "token.add"),
            ("#/settings", "Revoke the token ci", {"confirm": "ci"}, "are refused within two seconds", "Revoked", "token.revoke"),
        ]  # fmt: skip
        self.sign_in()
        for page, button, values, says, result, action in actions:
            with self.subTest(action=action):
                before = len(self.audited(action))
                self.browser.run("document.querySelector('dialog')?.remove()")
                self.go(page)
                script = "const found = [...document.querySelectorAll('main button')].find((each) => [each.textContent, each.ariaLabel].includes(arguments[0])); found?.click(); return !!found"
                wait_for(lambda: self.browser.run(script, button), button)  # noqa: B023
                self.wait_for_dialog(says)
                for name, value in values.items():
                    self.browser.run("document.querySelector('dialog').querySelector(`[name=${arguments[0]}]`).value = arguments[1]", name, value)
                self.browser.run("document.querySelector('dialog button[type=submit]').click()")
                self.wait_for_dialog(result)
                self.browser.run("[...document.querySelectorAll('dialog button')].find((each) => each.textContent === 'Close').click()")
                record = self.audited(action)
                self.assertGreater(len(record), before)
                self.assertTrue(record[0]["caller"].startswith("admin-"), record[0])

    def wait_for_dialog(self, words):
        text = lambda: self.browser.run("return document.querySelector('dialog')?.innerText ?? ''")  # noqa: E731
        try:
            wait_for(lambda: words in text(), words)
        except AssertionError as failure:
            raise AssertionError(f"{failure}; the dialog says: {text()}") from None

    def audited(self, action):
        return self.server.call("GET", f"/v1/audit?action={action}")["items"]

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
        browser.wait_for_text("Delivered:", "Replay the rest (6)")
        self.assertEqual(browser.run("return document.activeElement.textContent"), "Replay the rest (6)")
        browser.press(ENTER)
        browser.wait_for_text("6 events replayed")
        browser.press(ENTER)
        wait_for(lambda: parked(self.server) == before - 7, "the delivery")
        # A wrong name deletes nothing.
        self.open_dialog("Discard 4 events of the type order.void")
        self.assertEqual(browser.run("return document.activeElement.name"), "confirm")  # not the preset limit
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

    def verdict(self):
        """The kind of the headline of the overview, and its sentences, the first one first."""
        script = "const found = document.querySelector('section.verdict'); return found && [found.className, ...[...found.querySelectorAll('li')].map((each) => each.innerText)]"
        return wait_for(lambda: self.browser.run(script), "the verdict")

    def test_the_headline_is_the_worst_sentence(self):
        with tempfile.TemporaryDirectory() as directory:
            server = Server(directory, CONFIG.format(directory=directory))
            self.addCleanup(server.stop)
            own, self.server, self.cookie = self.server, server, server.start_session()
            self.origins.append(server.origin + "/")
            server.call("POST", "/v1/sequences/order.id/next", {"count": 3})
            self.sign_in()
            wait_for(lambda: self.verdict() == ["verdict good", "● All is well."], "all is well")
            # Every delivery fails, and will be repeated. What failed before the server looked is not known.
            wait_for(lambda: "pending" in server.call("GET", "/v1/status")["outboxes"][0], "the numbers of the outbox")
            server.call("POST", "/v1/outboxes/orders/events", [{"type": "order.paid", "key": key, "payload": {}} for key in ["1", "2"]])
            self.settle(server, {"outcome": "retry", "after": "1h", "why": "HTTP status 503"})
            wait_for(lambda: self.verdict() == ["verdict warn", "▲ orders: every delivery fails."], f"the failures, not {self.verdict()}")
            # Parked events stay below what is red.
            server.call("POST", "/v1/outboxes/orders/events", [{"type": "order.void", "key": "3", "payload": {}}])
            self.settle(server, {"outcome": "permanent", "policy": "skip", "why": "gone"})
            wait_for(lambda: "▲ orders has 1 event parked." in self.verdict(), f"the parked event, not {self.verdict()}")
            self.assertEqual(self.verdict()[0], "verdict warn")
            self.assertNotIn("All is well", self.browser.text())
            state = json.dumps({"health": {"healthy": False, "problem": "the disk is full"}, "points": []})
            others = Instances(Path(directory) / "answers.db")
            others.report(("web-1:17", []))
            others.database.execute("UPDATE HOLDFAST_INSTANCE SET STATE = ?", (state,))
            wait_for(lambda: self.verdict()[:2] == ["verdict bad", "✕ web-1:17: the disk is full"], f"the instance, not {self.verdict()}")
            self.assertIn("▲ orders has 1 event parked.", self.verdict())
            others.database.close()
            self.browser.open("about:blank")
            self.server = own

    @staticmethod
    def settle(server, outcome):
        """Claims what is due, and gives each event this outcome."""
        batch = wait_for(lambda: (found := server.call("POST", "/v1/outboxes/orders/claims", {"lane": 0, "most": 100, "run": 50}))["events"] and found, "a claim")
        events = [{"id": event["id"], "key": event.get("key", ""), **outcome} for event in batch["events"]]
        server.call("POST", "/v1/outboxes/orders/settlements", {"lane": 0, "fence": batch["fence"], "events": events})

    def test_a_dialog_ends_with_its_page(self):
        is_open = "return !!document.querySelector('dialog')"
        self.sign_in()
        for leave in ["history.back()", "location.hash = '#/sequences'"]:
            with self.subTest(leave=leave):
                self.go("#/points")
                self.go("#/outbox/orders")
                wait_for(lambda: self.browser.run("const found = [...document.querySelectorAll('main button')].find((each) => each.textContent === 'Check…'); found?.click(); return !!found"), "the button")
                self.assertTrue(self.browser.run(is_open))
                self.browser.run(leave)
                wait_for(lambda: not self.browser.run(is_open), "the end of the dialog")
                self.wait_for_page()

    def test_the_search_finds_names_of_the_configuration_and_instances(self):
        self.sign_in()
        # The only hit is opened.
        for text, heading in [("rders", "orders"), ("mai", "main"), ("web-1", "Instances: web-1:17")]:
            with self.subTest(text=text):
                self.go(f"#/search?q={text}")
                wait_for(lambda: self.wait_for_page() == heading, heading)  # noqa: B023
        self.go("#/search?q=nothing-has-this-name")
        self.browser.wait_for_text("Nothing has this id")

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

    def each_tab(self):
        for handle in self.browser._call("GET", self.browser.session + "/window/handles"):
            self.browser._call("POST", self.browser.session + "/window", {"handle": handle})
            yield

    def state_of_page(self):
        """The address, the title, and how many rows there are."""
        self.wait_for_page()
        return self.browser.run("return [location.hash, document.querySelector('h1').textContent, document.querySelectorAll('main tbody tr').length > 0]")

    def expect_pages(self, states):
        for state, _ in zip(states, self.each_tab(), strict=True):
            wait_for(lambda: self.state_of_page() == state, f"{state}, not {self.state_of_page()}")  # noqa: B023

    def test_every_page_survives_a_reload_a_restart_and_an_ended_session(self):
        """Each page in a tab of its own."""
        self.silent = False  # the browser reports refused connections, and the answers 401
        operator = self.server.token("operator")
        wait_for(lambda: self.is_accepted(operator), "the new token")
        pages = [page for name, page in self.pages.items() if name != "audit"]
        self.browser.open(f"{self.server.origin}/{pages[0]}")
        self.type_token(operator)
        self.browser.wait_for_text("Overview")
        self.assertNotIn("Audit", self.browser.run("return document.querySelector('nav').textContent"))
        self.browser.run("for (const page of arguments[0]) window.open('/' + page)", pages[1:])
        before = [self.state_of_page() for _ in self.each_tab()]
        self.assertEqual(sorted(each[0] for each in before), sorted(pages))
        for _ in self.each_tab():
            self.browser.run("location.reload()")
        self.expect_pages(before)
        self.server.stop(signal.SIGKILL)
        for _ in self.each_tab():
            self.browser.wait_for_text("No connection to the server since")
        self.browser.screenshot(SCREENSHOTS / "connection-lost.png")
        self.server.start()
        for _ in self.each_tab():
            wait_for(lambda: "No connection" not in self.browser.text(), "the new stream")
        self.expect_pages(before)
        self.assertEqual(self.streams(), 1)
        self.server.call("DELETE", f"/v1/tokens/{operator[3:11]}")
        for _ in self.each_tab():
            self.browser.wait_for_text("Your session has ended")
        # Who signs in in one tab has signed in in all of them.
        self.type_token(self.server.admin)
        self.expect_pages(before)

    def test_numbers_go_on_after_a_restart(self):
        self.silent = False  # the browser reports refused connections
        self.sign_in(page="#/sequences/order.id")
        self.server.stop(signal.SIGKILL)
        self.browser.wait_for_text("No connection to the server since")
        self.server.start()
        wait_for(lambda: "No connection" not in self.browser.text(), "the new stream")
        before = self.last_id()
        self.server.call("POST", "/v1/sequences/order.id/next", {"count": 5000})
        self.assertGreater(self.last_id(), before)
        # The next block may be granted meanwhile.
        wait_for(lambda: f"{self.last_id():,}" in self.browser.text(), "the new number on the page")

    def last_id(self):
        return int(self.server.call("GET", "/v1/sequences/order.id")["last"])

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
        wait_for(lambda: self.streams() == 1, "one stream")
        handles = self.browser._call("GET", self.browser.session + "/window/handles")
        self.assertEqual(len(handles), 3)
        for handle in handles[1:]:
            self.browser._call("POST", self.browser.session + "/window", {"handle": handle})
            # The state comes from the tab that reads.
            wait_for(lambda: "production" in self.browser.run("return document.title"), "the state")
        wait_for(lambda: self.streams() == 1, "one stream")

    def streams(self):
        return int(re.search(r"^holdfast_sse_streams (\d+)", self.server.call("GET", "/metrics"), re.M)[1])

    def test_a_chart_is_read_by_keyboard_and_as_a_table(self):
        self.sign_in(page="#/points/rates")
        wait_for(lambda: self.browser.run("return !!document.querySelector('.plot')"), "a chart")
        self.browser.tab_to(".plot")
        self.browser.press("\ue012")
        wait_for(lambda: "live" in self.browser.run("return document.querySelector('.readout').textContent"), "the values")
        self.browser.run("document.querySelector('.as-table summary').click()")
        self.assertGreater(self.browser.run("return document.querySelectorAll('.as-table tbody tr').length"), 1)
        # How long answers last is named by the horizon, not by the time that is left until then.
        self.browser.wait_for_text("Still answered after 1 min", "Still answered after 10 min", "Still answered after 3 d")
        self.assertEqual(self.violations(), [])
        # A page with a mistake is found, so that silence means something. New states redraw what is in `main`.
        self.browser.run("document.body.append(document.createElement('button'))")
        self.assertIn("button-name", "".join(self.violations()))


if __name__ == "__main__":
    unittest.main()
