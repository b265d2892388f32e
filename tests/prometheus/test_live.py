"""A real Prometheus scrapes real processes. Each alert that a process can cause fires, and each query of the dashboard returns data.

The rules are a copy with short times: `for`, ranges and limits in seconds. What is judged is everything else: names, labels, values, and that a
process in trouble has them. Healthy processes are scraped first, and must be silent."""

import contextlib
import http.client
import json
import os
import re
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse
from pathlib import Path

from holdfast_process import HOLDFAST, free_port, run
from rules import RULES, alerts, dashboard, metric_names, queries
from test_gateway import Gateway, Upstream
from test_observe import Observed
from test_serve import Serve

LONG = 300  # seconds: never reached when all is well

# Only promtool's unit tests fire these: no process can be brought to it within seconds.
NOT_CAUSED = {
    "HoldfastServerDefect": "it needs a defect of the server",
    "HoldfastAuditLost": "it needs more than 10,000 audited actions while the state database hangs",
    "HoldfastMetricsRefused": "it needs 60,000 series in the server",
}
# Without a process in trouble these fire: the target that does not exist, a certificate of one day, a cleaner whose schedule never comes.
FROM_THE_BEGINNING = {"HoldfastTargetDown", "HoldfastCertificateExpires", "HoldfastCleanupStopped"}
# With limits of seconds a slow machine can cause these for a moment. They must end again.
SHORT_LIMITS = {"HoldfastDatabaseNotAnswering", "HoldfastNotReady", "HoldfastOutboxOverdue", "HoldfastWorkerIdle", "HoldfastAnswersNotWritten"}

SCRAPE_SECONDS = 2
SHORT = [
    (r"^( +for:) \d+[smh]$", rf"\1 {SCRAPE_SECONDS}s"),
    (r"\[\d+[smh]\]", "[20s]"),
    (r"offset 26h", "offset 20s"),
    (r"(overdue[a-z_:]*seconds\)?) > \d+", r"\1 > 2"),
    (r"(oldest_unsaved_seconds) > 300", r"\1 > 2"),
]


def shortened(text):
    for pattern, replacement in SHORT:
        text, count = re.subn(pattern, replacement, text, flags=re.M)
        assert count > 0, f"the rules have no {pattern} any more"
    left = re.findall(r"> \d{2,}", text)
    assert not left, f"a limit in seconds that is not shortened: {left}"
    return text


def wait_for(condition, what, evidence=lambda: ""):
    end = time.monotonic() + LONG
    while not (result := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen: {evidence()}")
        time.sleep(0.2)
    return result


class Prometheus:
    def __init__(self, directory, jobs):
        """jobs: {name: [(target, labels), ...]}"""
        self.directory = Path(directory)
        self.directory.mkdir()
        self.port = free_port()
        (self.directory / "holdfast.rules.yml").write_text(shortened(RULES.read_text()))
        scrape = [{"job_name": name, "static_configs": [{"targets": [target], "labels": labels} for target, labels in targets]} for name, targets in jobs.items()]
        times = {name: f"{SCRAPE_SECONDS}s" for name in ("scrape_interval", "scrape_timeout", "evaluation_interval")}
        file = self.directory / "prometheus.yml"  # JSON is YAML
        file.write_text(json.dumps({"global": times, "rule_files": ["holdfast.rules.yml"], "scrape_configs": scrape}))
        self.log = open(self.directory / "log", "wb")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={self.directory}/data", f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"],
            stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.begin = time.time()
        wait_for(self.is_ready, "Prometheus", lambda: (self.directory / "log").read_text()[-2000:])

    def is_ready(self):
        assert self.process.poll() is None, (self.directory / "log").read_text()[-2000:]
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.get("/-/ready")[0] == 200

    def get(self, path, **parameters):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG)
        with contextlib.closing(connection):
            connection.request("GET", path + ("?" + urllib.parse.urlencode(parameters) if parameters else ""))
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def ask(self, path, **parameters):
        status, body = self.get("/api/v1/" + path, **parameters)
        assert status == 200, (parameters, body)
        return json.loads(body)["data"]

    def query(self, expression):
        return self.ask("query", query=expression)["result"]

    def number(self, expression):
        """The value of a query that has one series; None without one."""
        result = self.query(expression)
        return float(result[0]["value"][1]) if result else None

    def seen(self, expression):
        """The series of a query that had a value since the start."""
        now = time.time()
        step = max((now - self.begin) / 5000, SCRAPE_SECONDS)
        series = self.ask("query_range", query=expression, start=f"{self.begin:.3f}", end=f"{now:.3f}", step=f"{step:.3f}")["result"]
        return [each for each in series if any(value != "NaN" for _, value in each["values"])]

    def fired(self):
        return {each["metric"]["alertname"] for each in self.seen('ALERTS{alertname=~"Holdfast.*",alertstate="firing"}')}

    def firing(self):
        return {each["labels"]["alertname"] for each in self.ask("alerts")["alerts"] if each["state"] == "firing"}

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(LONG)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.log.close()


class Traffic:
    """Repeats some requests until it is stopped."""

    def __init__(self, *actions):
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(actions,), daemon=True)
        self.thread.start()

    def run(self, actions):
        while not self.stopping.wait(0.1):
            for action in actions:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    action()

    def stop(self):
        self.stopping.set()
        self.thread.join()


class Live(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = Path(directory.name)
        cls.start_processes()
        jobs = {
            "holdfast-serve": [(f"127.0.0.1:{server.port}", {}) for server in (cls.main, cls.blocked, cls.narrow, cls.leaving)],
            "holdfast-gateway": [(cls.gateway_metrics, {})],
            "holdfast-work": [(cls.target(process), {"outbox": name}) for name, process in cls.workers.items()],
            "holdfast-clean": [(cls.target(cls.cleaner), {})],
            "holdfast-yearly": [(cls.target(cls.yearly), {})],
            "holdfast-gone": [(f"127.0.0.1:{free_port()}", {})],
        }
        cls.prometheus = Prometheus(cls.directory / "prometheus", jobs)
        cls.addClassCleanup(cls.prometheus.end)
        cls.watch_healthy_processes(sum(map(len, jobs.values())) - 1)
        cls.cause_trouble()

    # ---- the processes ----

    @classmethod
    def folder(cls, name):
        path = cls.directory / name
        path.mkdir(exist_ok=True)
        return path

    @classmethod
    def url(cls, name):
        return f"sqlite:{cls.directory}/{name}.db"

    @classmethod
    def holdfast(cls, *words, stdin=b""):
        done = run(*words, stdin=stdin)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.decode()

    @classmethod
    def serve(cls, name, config, **more):
        server = Serve(cls.folder(name), config=config, **more)
        cls.addClassCleanup(server.kill)
        return server

    @classmethod
    def observed(cls, name, *words):
        process = Observed(cls.folder(name), *words, "--listen", "127.0.0.1:0")
        cls.addClassCleanup(process.end, signal.SIGKILL)
        return process

    @classmethod
    def worker(cls, outbox, command, *words):
        return cls.observed("work-" + outbox, "outbox", "work", "--outbox", cls.url(outbox), "--create-schema", "--exec", command, *words)

    @staticmethod
    def target(process):
        return process.address().removeprefix("http://")

    @classmethod
    def start_processes(cls):
        cls.upstream = Upstream()
        cls.addClassCleanup(cls.upstream.kill)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", cls.directory / "tls.key",
                        "-out", cls.directory / "tls.pem", "-days", "1", "-subj", "/CN=gateway"], check=True, capture_output=True)
        cls.holdfast("seq", "next", "--store", cls.url("main"), "--create-schema", "--name", "ticket.id", "--max", "1000", "--count", "500")
        cls.main = cls.serve("main", f"""
[serve]
label = "shop"
[stores.main]
url = "{cls.url("main")}"
create-schema = true
[sequences]
url = "{cls.url("main")}"
create-schema = true
[outboxes.orders]
url = "{cls.url("orders")}"
create-schema = true
[outboxes.mails]
url = "{cls.url("mails")}"
create-schema = true
[outboxes.audits]
url = "{cls.url("audits")}"
create-schema = true
[gateway]
listen = "127.0.0.1:0"
[gateway.tls]
certificate = "{cls.directory}/tls.pem"
key = "{cls.directory}/tls.key"
[gateway.routes.shop]
upstream = "{cls.upstream.url}"
[failover.points.prices]
expiry = "10m"
breaker.enabled = true
breaker.minimum = 2
""")
        # Its store can be locked without another server noticing.
        cls.blocked = cls.serve("blocked", f'[stores.main]\nurl = "{cls.url("blocked")}"\ncreate-schema = true\n[failover.points.prices]\nexpiry = "1d"\n')
        cls.narrow = cls.serve("narrow", f'[stores.main]\nurl = "{cls.url("narrow")}"\ncreate-schema = true\n[serve.limits]\nworkers = 1\nqueue = 1\n')
        cls.leaving = cls.serve("leaving", "", drain="600s")
        cls.gateway = Gateway(cls.folder("gateway"), "--upstream", cls.upstream.url, "--observe", "127.0.0.1:0", "--deadline", "60s")
        cls.addClassCleanup(cls.gateway.kill)
        cls.gateway_metrics = wait_for(lambda: re.search(r"metrics on http://(\S+)/metrics\n", cls.gateway.errors.read_text()), "the address of the gateway")[1]
        # Deliveries of orders never end, those of mails succeed until a mail is forbidden.
        cls.workers = {"orders": cls.worker("orders", "sleep 3600", "--concurrency", "1", "--time-limit", "0s"),
                       "mails": cls.worker("mails", 'test "$HOLDFAST_EVENT_TYPE" != forbidden || exit 65')}
        cls.reporter = cls.worker("audits", "true")
        clean = ("store", "clean", "--create-schema", "--watch", "--jitter", "0s")
        cls.cleaner = cls.observed("cleaner", *clean, "--store", cls.url("cleaned"), "--cron", "* * * * * *")
        cls.yearly = cls.observed("yearly", *clean, "--store", cls.url("yearly"), "--cron", "0 0 0 29 2 *")

    # ---- what happens ----

    @classmethod
    def watch_healthy_processes(cls, count):
        prometheus = cls.prometheus
        wait_for(lambda: prometheus.number("count(up == 1)") == count, "a scrape of every process", lambda: prometheus.query("up"))
        wait_for(lambda: prometheus.number("count(holdfast_ready == 1)") == count, "readiness", lambda: prometheus.query("holdfast_ready == 0"))
        # A route and a point that work. One answer is kept for later, one is not.
        assert cls.call("answers", "kept", payload={"price": 1}) == 200
        assert cls.take_id() == 200
        cls.good = Traffic(lambda: cls.gateway.get("/kept"), lambda: cls.call("answers", "kept", payload={"price": 1}), cls.take_id)
        cls.addClassCleanup(cls.good.stop)
        cls.holdfast("outbox", "publish", "--outbox", cls.url("mails"), "--type", "welcome", "--payload", "{}")
        wait_for(lambda: prometheus.number('sum(holdfast:point_calls:rate5m{name="prices"}) > 0'), "calls")
        wait_for(lambda: prometheus.number('sum(holdfast:gateway_requests:rate5m) > 0'), "requests")
        wait_for(lambda: prometheus.number('sum(holdfast_outbox_outcomes_total{outcome="done"} > 0)'), "a delivery")
        # Some evaluations.
        time.sleep(5 * SCRAPE_SECONDS)
        wait_for(lambda: not prometheus.firing() & SHORT_LIMITS, "silence", prometheus.firing)
        cls.fired_while_healthy = prometheus.fired() - SHORT_LIMITS

    @classmethod
    def call(cls, what, argument, server=None, **more):
        server = server or cls.main
        return server.get(f"/v1/points/prices/{what}", "POST", json.dumps({"args": [{"t": "str", "v": argument}], **more}), Content_Type="application/json")[0]

    @classmethod
    def take_id(cls):
        return cls.main.get("/v1/sequences/order.id/next", "POST", json.dumps({"count": 1}), Content_Type="application/json")[0]

    @classmethod
    def locked(cls, name):
        """Holds the lock for writing of a file of SQLite, until the result is closed."""
        database = sqlite3.connect(cls.directory / f"{name}.db", timeout=LONG, isolation_level=None, check_same_thread=False)
        database.execute("BEGIN IMMEDIATE")
        return contextlib.closing(database)

    @classmethod
    def sql(cls, name, statement):
        with contextlib.closing(sqlite3.connect(cls.directory / f"{name}.db", timeout=LONG)) as database, database:
            return database.execute(statement).fetchall()

    @classmethod
    def cause_trouble(cls):
        cls.good.stop()
        # Upstreams fail: of the gateway, of the point.
        cls.upstream.kill()
        cls.bad = Traffic(lambda: cls.gateway.get("/kept"), lambda: cls.gateway.get("/unknown"),
                          lambda: cls.call("recover", "kept"), lambda: cls.call("recover", "unknown"))
        cls.addClassCleanup(cls.bad.stop)
        # Events: the worker of orders has its hands full, a mail is refused, the third outbox is paused.
        events = "".join(json.dumps({"type": "paid", "payload": "{}"}) + "\n" for _ in range(3000))
        cls.holdfast("outbox", "publish", "--outbox", cls.url("orders"), "--jsonl", "-", stdin=events)
        cls.holdfast("outbox", "publish", "--outbox", cls.url("mails"), "--type", "forbidden", "--payload", "{}")
        cls.holdfast("outbox", "pause", "--outbox", cls.url("audits"))
        cls.holdfast("seq", "next", "--store", cls.url("main"), "--name", "ticket.id", "--max", "1000", "--count", "450")
        # A process is killed. Its last report is made older than three intervals.
        instance = f"%:{cls.reporter.process.pid}"
        wait_for(lambda: cls.sql("audits", f"SELECT 1 FROM HOLDFAST_INSTANCE WHERE INSTANCE LIKE '{instance}'"), "the report of a worker")
        cls.reporter.end(signal.SIGKILL)
        cls.sql("audits", f"UPDATE HOLDFAST_INSTANCE SET SEEN = SEEN - 60000000 WHERE INSTANCE LIKE '{instance}'")
        # The table of a cleaner is away.
        cls.sql("cleaned", "ALTER TABLE FAILOVER_STORE RENAME TO AWAY")
        # One server is asked to end, another gets a bad file.
        cls.leaving.process.send_signal(signal.SIGTERM)
        cls.main.file.write_text("[serve]\nnames = 5\n")
        cls.main.process.send_signal(signal.SIGHUP)
        # A store that cannot be written, and one whose only worker waits for it now and then.
        cls.keep(cls.locked("blocked"))
        assert cls.call("answers", "a", server=cls.blocked, payload={}) == 200
        wait_for(cls.overload, "an overload")

    @classmethod
    def keep(cls, context):
        context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)

    @classmethod
    def overload(cls):
        """Some refusals, and time for scrapes, which need the worker, too. Returns whether the alert has fired."""
        # One of them has the worker, one is in the queue, the others are refused at once.
        statuses = []

        def put(i):
            statuses.append(cls.narrow.get(f"/v1/stores/main/country/{i}", "PUT", b"{}", Holdfast_Expires="2100-01-01T00:00:00Z")[0])
        with cls.locked("narrow"):
            clients = [Traffic(lambda i=i: put(i)) for i in range(6)]
            try:
                wait_for(lambda: statuses.count(503) >= 20, "20 refusals", lambda: statuses)
            finally:
                for client in clients:
                    client.stopping.set()
        for client in clients:
            client.stop()
        time.sleep(2 * SCRAPE_SECONDS)
        return cls.prometheus.seen('ALERTS{alertname="HoldfastServerOverloaded",alertstate="firing"}')

    # ---- what Prometheus says ----

    def test_healthy_processes_are_silent(self):
        self.assertLessEqual(self.fired_while_healthy, FROM_THE_BEGINNING)

    def test_every_alert_fires(self):
        expected = set(alerts()) - set(NOT_CAUSED)
        shown = {}

        def all_fired():
            for each in self.prometheus.ask("alerts")["alerts"]:
                if each["state"] == "firing":
                    shown[each["labels"]["alertname"]] = each
            return expected <= self.prometheus.fired()
        wait_for(all_fired, "an alert", lambda: f"not fired: {sorted(expected - self.prometheus.fired())}")
        for name, each in shown.items():
            for text in each["annotations"].values():
                self.assertNotRegex(text, r"<error|<no value>|\{\{|  | \.|%!", name)
        self.assertEqual(self.prometheus.fired() & set(NOT_CAUSED), set())

    def test_the_right_processes_have_fired(self):
        """The labels by which a person finds the process."""
        expected = {
            "HoldfastTargetDown": {"job": "holdfast-gone"},
            "HoldfastDatabaseNotAnswering": {"job": "holdfast-clean", "name": "database"},
            "HoldfastNotReady": {"instance": f"127.0.0.1:{self.leaving.port}"},
            "HoldfastInstanceSilent": {"kind": "worker"},
            "HoldfastReloadFailed": {"instance": f"127.0.0.1:{self.main.port}"},
            "HoldfastCertificateExpires": {"listener": "gateway"},
            "HoldfastServerOverloaded": {"instance": f"127.0.0.1:{self.narrow.port}"},
            "HoldfastCallsUnserved": {"name": "prices"},
            "HoldfastGatewayUnserved": {"job": "holdfast-gateway", "route": "gateway"},
            "HoldfastServedStale": {"name": "prices"},
            "HoldfastAnswersRunOut": {"name": "prices"},
            "HoldfastBreakerOpen": {"name": "prices"},
            "HoldfastAnswersNotWritten": {"instance": f"127.0.0.1:{self.blocked.port}"},
            "HoldfastOutboxOverdue": {"outbox": "orders"},
            "HoldfastWorkerIdle": {"job": "holdfast-work", "outbox": "orders"},
            "HoldfastEventsParked": {"job": "holdfast-work", "outbox": "mails"},
            "HoldfastOutboxPaused": {"outbox": "audits"},
            "HoldfastSequenceEnding": {"sequence": "ticket.id"},
            "HoldfastCleanupFails": {"job": "holdfast-clean"},
            "HoldfastCleanupStopped": {"job": "holdfast-yearly"},
        }
        self.assertEqual(set(expected) | set(NOT_CAUSED), set(alerts()))
        for name, labels in expected.items():
            matcher = ",".join(f'{label}="{value}"' for label, value in {"alertname": name, "alertstate": "firing", **labels}.items())
            with self.subTest(name):
                wait_for(lambda: self.prometheus.seen(f"ALERTS{{{matcher}}}"), name, lambda: self.prometheus.seen(f'ALERTS{{alertname="{name}"}}'))

    def test_metrics_of_alerts_that_are_not_caused_exist(self):
        for name in NOT_CAUSED:
            for metric in metric_names(alerts()[name].field("expr")):
                self.assertTrue(self.prometheus.seen(metric), metric)

    def test_every_query_of_the_dashboard_has_data(self):
        for title, expression in queries():
            text = expression.replace("$__rate_interval", "20s").replace("$job", ".*").replace("$instance", ".*").replace("[1h]", "[20s]")
            self.assertNotIn("$", text)
            with self.subTest(panel=title, query=expression):
                wait_for(lambda: self.prometheus.seen(text), f"data for {text}")

    def test_every_variable_of_the_dashboard_has_values(self):
        for variable in dashboard()["templating"]["list"][1:]:
            selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
            series = self.prometheus.seen(selector.replace("$job", ".*"))
            self.assertTrue(any(label in each["metric"] for each in series), variable["name"])


if __name__ == "__main__":
    unittest.main()
