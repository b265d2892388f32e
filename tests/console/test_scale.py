"""The console with many parked events, 1,000 points and 200 instances: how much it asks for and draws, and how long that takes.

    HOLDFAST=build/release/apps/holdfast/holdfast HOLDFAST_CONSOLE_SCALE=1000000 tests/console/test_scale.py

is the full size, on SQLite. HOLDFAST_CONSOLE_OUTBOX=postgresql://... or redis://... takes another, empty database. At the full size the first
table of each page must come within a second; otherwise only the amounts are limited, because a test runs on machines of any speed.
"""

import os
import tempfile
import threading
import time
import unittest
from pathlib import Path

from browser import Browser, wait_for
from server import Instances, Server

SCALE = int(os.environ.get("HOLDFAST_CONSOLE_SCALE", "0"))
PARKED = SCALE or 100_000
BATCH = 1_000
POINTS, INSTANCES, POINTS_OF_INSTANCE = 1_000, 200, 300
CONFIG = """
[serve]
label = "many"
[stores.main]
url = "sqlite:{directory}/answers.db"
create-schema = true
[outboxes.orders]
url = "{outbox}"
create-schema = true
[sequences]
url = "sqlite:{directory}/ids.db"
create-schema = true
"""
MOST_ROWS, MOST_ELEMENTS, MOST_BYTES = 100, 6_000, 1_000_000
PAGES = {
    "overview": "#/", "points": "#/points", "point": "#/points/point-0500", "instances": "#/instances", "outboxes": "#/outbox",
    "outbox": "#/outbox/orders", "parked": "#/outbox/orders/parked", "one type": "#/outbox/orders/parked?type=order.sent",
    "events": "#/outbox/orders/events", "sequences": "#/sequences", "stores": "#/stores", "search": "#/search?q=point-09", "instance": "#/instances/web-007:17",
}  # fmt: skip
# Opens a page as a link does, and measures until its first table is there, and until nothing is loading.
OPEN = """
const [page, done] = arguments;
performance.clearResourceTimings();
location.hash = '#/settings';
const start = performance.now();
setTimeout(() => {
  const begin = performance.now();
  location.hash = page;
  let first = null;
  const look = () => {
    const main = document.querySelector('main');
    const loaded = main && !main.querySelector('[aria-busy]') && main.dataset.key === `page ${decodeURI(page).replace(/^#\\/|\\?.*/g, '')}`;
    if (loaded && first === null && main.querySelector('tbody tr')) first = performance.now() - begin;
    if (first === null && performance.now() - begin < 60000) return requestAnimationFrame(look);
    const asked = performance.getEntriesByType('resource').filter((each) => each.name.includes('/v1/') && !each.name.includes('/v1/events'));
    done({ first, rows: main.querySelectorAll('tbody tr').length, elements: document.querySelectorAll('*').length,
           bytes: Math.max(0, ...asked.map((each) => each.decodedBodySize)) });
  };
  look();
}, 300);
"""
# Scrolls for a second, and types into the search box; returns the longest times between two frames.
USE = """
const done = arguments[0];
const longest = { scroll: 0, search: 0 };
const box = document.getElementById('search');
let last = performance.now();
let frame = 0;
const step = (now) => {
  const kind = frame < 60 ? 'scroll' : 'search';
  if (frame > 1) longest[kind] = Math.max(longest[kind], now - last);
  last = now;
  frame += 1;
  if (kind === 'scroll') window.scrollBy(0, 40);
  else { box.value += 'a'; box.dispatchEvent(new InputEvent('input', { bubbles: true })); }
  if (frame < 120) requestAnimationFrame(step);
  else done(longest);
};
requestAnimationFrame(step);
"""


def report(name, value):
    print(f"  {name:<12} {value}", flush=True)


def points_of(instance, calls):
    """The points that an instance reports. In one of 50 calls fail, and are answered from the store."""
    for i in range(POINTS_OF_INSTANCE):
        number = (instance * 5 + i) % POINTS
        stale = calls // 2 if number % 50 == 0 else 0
        counts = {"started": calls, "live": calls - stale, "stale": stale}
        yield {"name": f"point-{number:04}", "breaker": "open" if stale else "closed", "running": 1, "numbers": counts}


class Scale(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        outbox = os.environ.get("HOLDFAST_CONSOLE_OUTBOX", f"sqlite:{directory.name}/events.db")
        cls.server = Server(directory.name, CONFIG.format(directory=directory.name, outbox=outbox))
        cls.addClassCleanup(cls.server.stop)
        cls.instances = Instances(Path(directory.name) / "answers.db")
        cls.fleet(0)
        begin = time.monotonic()
        threads = [threading.Thread(target=cls.publish, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        cls.park()
        report("filled", f"{PARKED} parked events in {time.monotonic() - begin:.0f} s")
        for i in range(150):
            cls.server.call("POST", f"/v1/sequences/ids.{i:03}/next", {"count": 3})

    @classmethod
    def fleet(cls, calls):
        cls.instances.report(*[(f"web-{i:03}:17", list(points_of(i, calls))) for i in range(INSTANCES)])

    @classmethod
    def publish(cls, part):
        for begin in range(part * PARKED // 2, (part + 1) * PARKED // 2, BATCH):
            kinds = ["order.paid", "order.sent", "invoice.made"]
            events = [{"type": kinds[i % 3], "payload": {"n": i}} for i in range(begin, min(begin + BATCH, (part + 1) * PARKED // 2))]
            cls.server.call("POST", "/v1/outboxes/orders/events", events)

    @classmethod
    def park(cls):
        while True:
            batch = cls.server.call("POST", "/v1/outboxes/orders/claims", {"lane": 0, "most": BATCH, "run": 1})
            if not batch["events"]:
                return
            refusal = {"outcome": "permanent", "policy": "skip", "why": "HTTP status 422"}
            events = [{"id": event["id"], "key": "", **refusal} for event in batch["events"]]
            cls.server.call("POST", "/v1/outboxes/orders/settlements", {"lane": 0, "fence": batch["fence"], "events": events})

    def test_pages_are_bounded_and_fast(self):
        browser = Browser()
        self.addCleanup(browser.close)
        browser.open(self.server.origin)
        browser.set_cookie(name="holdfast", value=self.server.start_session(), path="/", httpOnly=True, sameSite="Strict")
        browser.open("about:blank")
        browser.open(self.server.origin + "/#/instances")
        browser.wait_for_text(f"Show more ({INSTANCES - 100} are not shown)")
        # Two reports make a rate. The state changes every second, as that of a busy server does.
        self.fleet(10_000)
        wait_for(lambda: any(any(each["values"]) for each in self.server.call("GET", "/v1/history?series=calls.stale")["series"]), "the rates")
        status = self.server.call("GET", "/v1/status")
        self.assertEqual(len(status["points"]), POINTS)
        self.assertEqual({point["instances"] for point in status["points"]}, {INSTANCES * POINTS_OF_INSTANCE // POINTS})
        rates = sum(point["rate"] for point in status["points"])
        sums = {each["name"]: each["values"] for each in self.server.call("GET", "/v1/history?series=calls.live,calls.stale,calls.unserved")["series"]}
        latest = [max(value or 0 for value in values) for values in sums.values()]
        report("calls", f"{rates:.0f}/s in the state, {sum(latest):.0f}/s in the chart")
        self.assertGreater(sum(latest), 0)
        one = self.server.call("GET", "/v1/history?series=point.rate:point-0999,point.staleRatio:point-0950")["series"]
        self.assertEqual(len(one), 2, "every point has its series")
        report("page", "first table, longest frame while scrolling and typing, rows, elements, largest answer")
        for name, page in PAGES.items():
            with self.subTest(page=name):
                opened = browser.run_async(OPEN, page)
                self.assertIsNotNone(opened["first"], browser.text()[:500])
                used = browser.run_async(USE)
                report(name, f"{opened['first']:6.0f} ms {used['scroll']:5.0f} ms {used['search']:5.0f} ms {opened['rows']:5} {opened['elements']:6} {opened['bytes']:8}")
                # The overview has a table for each kind, and charts have one, too.
                self.assertLessEqual(opened["rows"], 3 * MOST_ROWS)
                self.assertLessEqual(opened["elements"], MOST_ELEMENTS)
                self.assertLessEqual(opened["bytes"], MOST_BYTES)
                if SCALE:
                    self.assertLess(opened["first"], 1_000)
                    self.assertLess(max(used.values()), 500)


if __name__ == "__main__":
    unittest.main()
