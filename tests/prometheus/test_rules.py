"""The rules with promtool: their form, and for each alert series that let it fire, and series that do not."""

import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from rules import DASHBOARD, ROOT, RULES, SCRAPE, alerts, dashboard, metric_names, queries, records

LONG = 300  # seconds: never reached when all is well
AT = 'job="holdfast-serve",instance="a:1"'


def counter(name, labels, per_minute, start=0):
    return (f"{name}{{{labels}}}", f"{start}+{per_minute}x2000")


def gauge(name, labels, value, minutes=2000):
    return (f"{name}{{{labels}}}", f"{value}x{minutes}")


def calls(**per_minute):
    """Calls of the point p, by result. A counter that does not grow is there, too."""
    return [counter("holdfast_failover_calls_total", f'{AT},name="p",result="{result}"', per_minute.get(result, 0))
            for result in ("live", "stale", "fresh", "substituted", "failed", "passed")]


def requests(**per_minute):
    return [counter("holdfast_gateway_requests_total", f'{AT},route="r",outcome="{outcome}"', per_minute.get(outcome, 0))
            for outcome in ("live", "stale", "fresh", "unserved", "refused", "cut")]


def outlook(seconds, part="half"):
    return gauge("holdfast_point_outlook_seconds", f'{AT},name="p",part="{part}"', seconds)


WORK = 'job="holdfast-work",instance="w:1",outbox="orders"'
SERVED = f'{AT},outbox="orders"'
CLEAN = 'job="holdfast-clean",instance="c:1"'


def overdue(seconds):
    return gauge("holdfast_outbox_overdue_seconds", WORK, seconds)


def deliveries(per_minute):
    return counter("holdfast_outbox_deliveries_total", WORK, per_minute)


def parked(per_minute):
    return counter("holdfast_outbox_outcomes_total", f'{WORK},outcome="parked"', per_minute)


def paused(value):
    return gauge("holdfast_serve_outbox_paused", SERVED, value)


def runs(per_minute=0, **by_result):
    return [counter("holdfast_cleanup_runs_total", f'{CLEAN},result="{result}"', by_result.get(result, 0))
            for result in ("cleaned", "held_elsewhere", "failed", "lost")]


# For each alert: [series that let it fire, ...], [series that do not, ...].
CASES = {
    "HoldfastTargetDown": (
        [[gauge("up", 'job="holdfast-work",instance="a:1"', 0)]],
        [[gauge("up", 'job="holdfast-work",instance="a:1"', 1)], [gauge("up", 'job="node",instance="a:1"', 0)]]),
    "HoldfastDatabaseNotAnswering": (
        [[gauge("holdfast_missing", f'{AT},name="store:main"', 1)], [gauge("holdfast_missing", f'{AT},name="database"', 1)]],
        [[gauge("holdfast_missing", f'{AT},name="store:main"', 0)], [gauge("holdfast_missing", f'{AT},name="draining"', 1)]]),
    "HoldfastNotReady": (
        [[gauge("holdfast_ready", AT, 0), gauge("holdfast_missing", f'{AT},name="starting"', 1)],
         # The database of another process.
         [gauge("holdfast_ready", AT, 0), gauge("holdfast_missing", 'job="holdfast-serve",instance="b:1",name="store:main"', 1)]],
        [[gauge("holdfast_ready", AT, 1)],
         # One alert is enough.
         [gauge("holdfast_ready", AT, 0), gauge("holdfast_missing", f'{AT},name="store:main"', 1)]]),
    "HoldfastInstanceSilent": (
        [[gauge("holdfast_serve_instances", f'{AT},kind="worker",state="silent"', 2)],
         # A second server on the same database.
         [gauge("holdfast_serve_instances", f'job="holdfast-serve",instance="{instance}",kind="worker",state="silent"', 2) for instance in ("a:1", "b:1")]],
        [[gauge("holdfast_serve_instances", f'{AT},kind="worker",state="silent"', 0), gauge("holdfast_serve_instances", f'{AT},kind="worker",state="healthy"', 9)]]),
    "HoldfastReloadFailed": (
        [[gauge("holdfast_serve_reload_successful", AT, 0)]],
        [[gauge("holdfast_serve_reload_successful", AT, 1)]]),
    "HoldfastCertificateExpires": (
        [[gauge("holdfast_tls_certificate_expiry_timestamp_seconds", f'{AT},listener="api"', 10 * 86400)]],
        [[gauge("holdfast_tls_certificate_expiry_timestamp_seconds", f'{AT},listener="api"', 30 * 86400)]]),
    "HoldfastServerOverloaded": (
        [[counter("holdfast_http_overloaded_total", AT, 60)]],
        [[counter("holdfast_http_overloaded_total", AT, 1)], [counter("holdfast_http_overloaded_total", AT, 0, 5000)]]),
    "HoldfastServerDefect": (
        [[counter("holdfast_http_defects_total", AT, 1)]],
        [[counter("holdfast_http_defects_total", AT, 0, 7)]]),
    "HoldfastAuditLost": (
        [[counter("holdfast_serve_audit_lost_total", AT, 1)]],
        [[counter("holdfast_serve_audit_lost_total", AT, 0, 7)]]),
    "HoldfastMetricsRefused": (
        [[gauge("holdfast_metrics_series_refused_total", AT, 1)]],
        [[gauge("holdfast_metrics_series_refused_total", AT, 0)]]),
    "HoldfastCallsUnserved": (
        [calls(live=90, failed=10), calls(failed=1)],
        [calls(live=1000, failed=1), calls(live=10, passed=10), calls(),
         # A route of the gateway has an alert of its own.
         calls(failed=10) + [counter("holdfast_gateway_requests_total", f'{AT},route="p",outcome="unserved"', 10)]]),
    "HoldfastGatewayUnserved": (
        [requests(live=90, unserved=10), requests(live=90, cut=10)],
        [requests(live=1000, unserved=1), requests(live=1000, refused=500), requests()]),
    "HoldfastServedStale": (
        [calls(live=50, stale=50)],
        [calls(live=100, stale=1), calls(live=50, fresh=50)]),
    "HoldfastAnswersRunOut": (
        [calls(live=50, stale=50) + [outlook(600)]],
        [calls(live=50, stale=50) + [outlook(86400)], calls(live=50, stale=50) + [outlook(600, "first"), outlook(86400)], calls(live=100) + [outlook(600)]]),
    "HoldfastBreakerOpen": (
        [[gauge("holdfast_failover_breaker_state", f'{AT},name="p"', 2)], [gauge("holdfast_failover_breaker_state", f'{AT},name="p"', 1)]],
        [[gauge("holdfast_failover_breaker_state", f'{AT},name="p"', 0)]]),
    "HoldfastAnswersNotWritten": (
        [[gauge("holdfast_failover_oldest_unsaved_seconds", AT, 400)]],
        [[gauge("holdfast_failover_oldest_unsaved_seconds", AT, 30)]]),
    "HoldfastOutboxOverdue": (
        [[overdue(400)], [gauge("holdfast_serve_outbox_overdue_seconds", SERVED, 400), paused(0)]],
        [[overdue(30)], [gauge("holdfast_serve_outbox_overdue_seconds", SERVED, 400), paused(1)], [overdue(400), paused(1)]]),
    "HoldfastWorkerIdle": (
        [[overdue(90), deliveries(0)]],
        [[overdue(90), deliveries(5)], [overdue(0), deliveries(0)], [overdue(90), deliveries(0), paused(1)],
         # A second worker of the outbox delivers.
         [overdue(90), deliveries(0), counter("holdfast_outbox_deliveries_total", WORK.replace("w:1", "w:2"), 5)]]),
    "HoldfastEventsParked": (
        [[parked(1)], [(f"holdfast_serve_outbox_parked{{{SERVED}}}", "0x10 3x2000")]],
        [[parked(0)], [gauge("holdfast_serve_outbox_parked", SERVED, 3)], [(f"holdfast_serve_outbox_parked{{{SERVED}}}", "3x10 0x2000")]]),
    "HoldfastOutboxPaused": ([[paused(1)]], [[paused(0)]]),
    "HoldfastSequenceEnding": (
        [[gauge("holdfast_serve_sequence_left_ratio", f'{AT},sequence="order.id"', 0.05)]],
        [[gauge("holdfast_serve_sequence_left_ratio", f'{AT},sequence="order.id"', 0.5)]]),
    "HoldfastCleanupFails": (
        [runs(failed=1), runs(lost=1)],
        [runs(cleaned=1), runs(cleaned=1, failed=1), runs(held_elsewhere=1, failed=1), runs()]),
    "HoldfastCleanupStopped": (
        [runs(), runs(failed=1)],
        [runs(cleaned=1), runs(held_elsewhere=1)]),
}
# When the firing cases are looked at: after the longest window, which is 26 hours.
WINDOWS = {"HoldfastCleanupStopped": 27 * 60, "HoldfastEventsParked": 20, "HoldfastCertificateExpires": 90}


def looked_at(alert):
    """Minutes after which an alert whose condition holds from the beginning must fire."""
    return WINDOWS.get(alert.name, 10 + alert.pending // 60)


def expect(minutes, name, count):
    return {"eval_time": f"{minutes}m", "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})',
            "exp_samples": [{"labels": "{}", "value": count}] if count else []}


def case(series, *expected):
    return {"interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series], "promql_expr_test": list(expected)}


RECORDED = [
    (calls(live=60, stale=30, failed=30, passed=600), 'holdfast:point_calls:rate5m', 2),
    (calls(live=60, stale=30, failed=30, passed=600), 'holdfast:point_stale:ratio_rate5m', 0.25),
    (calls(live=90, failed=30, passed=600), 'holdfast:point_unserved:ratio_rate5m', 0.25),
    (requests(live=60, refused=600), 'holdfast:gateway_requests:rate5m', 1),
    (requests(live=30, stale=30, refused=600), 'holdfast:gateway_stale:ratio_rate5m', 0.5),
    (requests(live=60, unserved=30, cut=30, refused=600), 'holdfast:gateway_unserved:ratio_rate5m', 0.5),
    ([deliveries(60), counter("holdfast_outbox_deliveries_total", WORK.replace("w:1", "w:2"), 60)], 'holdfast:outbox_deliveries:rate5m', 2),
    ([overdue(30), gauge("holdfast_outbox_overdue_seconds", WORK.replace("w:1", "w:2"), 40)], 'holdfast:outbox_overdue:seconds', 40),
    ([counter("holdfast_http_requests_total", f'{AT},status="2xx"', 120)], 'holdfast:http_requests:rate5m', 2),
    ([counter("holdfast_http_request_seconds_bucket", f'{AT},le="{le}"', 100) for le in ("0.5", "+Inf")]
     + [counter("holdfast_http_request_seconds_bucket", f'{AT},le="0.25"', 98)], 'holdfast:http_request_seconds:p99_rate5m', 0.375),
]


class Rules(unittest.TestCase):
    def promtool(self, *words):
        done = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, timeout=LONG)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])
        return done.stdout

    def run_cases(self, cases, interval="1m"):
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "cases.yml"  # JSON is YAML
            file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": interval, "tests": cases}))
            self.promtool("test", "rules", file)

    def test_form(self):
        count = len(alerts()) + len(records())
        self.assertIn(f"SUCCESS: {count} rules found", self.promtool("check", "rules", RULES))
        self.promtool("check", "config", SCRAPE)

    def test_every_alert_says_what_to_do(self):
        page = (ROOT / "docs/operating-at-night.md").read_text()
        sections = re.split(r"^#+ ", page, flags=re.M)
        for name, alert in alerts().items():
            with self.subTest(name):
                self.assertIn(alert.field("severity"), ("critical", "warning"))
                for field in ("summary", "description"):
                    self.assertGreater(len(alert.field(field)), 20)
                self.assertEqual(alert.field("runbook"), f"docs/operating-at-night.md#{name.lower()}")
                section = [text for text in sections if text.startswith(name + "\n")]
                self.assertEqual(len(section), 1)
                self.assertGreater(len(section[0]), 200)
        headings = re.findall(r"^#+ (Holdfast[A-Z]\w+)$", page, re.M)
        self.assertEqual(sorted(headings), sorted(alerts()))

    def test_every_alert_fires_and_stays_silent(self):
        self.assertEqual(sorted(CASES), sorted(alerts()))
        short, long = [], []
        for name, alert in alerts().items():
            minutes = looked_at(alert)
            cases = long if minutes > 600 else short
            firing, silent = CASES[name]
            for series in firing:
                early = [expect(max(alert.pending // 60 - 1, 0), name, 0)] if alert.pending else []
                cases.append(case(series, *early, expect(minutes, name, 1)))
            cases += [case(series, expect(minutes, name, 0)) for series in silent]
        self.run_cases(short)
        self.run_cases(long, "10m")

    def test_every_record_has_its_value(self):
        self.assertEqual(sorted(name for _, name, _ in RECORDED), sorted(records()))
        self.run_cases([case(series, {"eval_time": "20m", "expr": f"round(sum({name}), 0.001)", "exp_samples": [{"labels": "{}", "value": value}]})
                        for series, name, value in RECORDED])

    def test_a_wrong_expectation_fails(self):
        """That the cases above are judged at all."""
        firing, silent = CASES["HoldfastReloadFailed"]
        for series, count in ((firing[0], 0), (silent[0], 1)):
            with self.assertRaises(AssertionError):
                self.run_cases([case(series, expect(30, "HoldfastReloadFailed", count))])

    def test_dashboard_can_be_imported(self):
        content = dashboard()
        self.assertEqual((content["title"], content["uid"]), ("Holdfast", "holdfast"))
        variables = {each["name"]: each for each in content["templating"]["list"]}
        self.assertEqual(list(variables), ["datasource", "job", "instance"])
        self.assertEqual((variables["datasource"]["type"], variables["datasource"]["query"]), ("datasource", "prometheus"))
        rows = [panel["title"] for panel in content["panels"] if panel["type"] == "row"]
        self.assertEqual(rows, ["Overview", "Points", "Gateway", "Outboxes", "Sequences", "Stores", "Server"])
        numbers = [panel["id"] for panel in content["panels"]]
        self.assertEqual(len(numbers), len(set(numbers)))
        taken = set()
        for panel in content["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            self.assertTrue(all(x < 24 for x, _ in cells), panel["title"])
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells
            if panel["type"] == "row":
                continue
            self.assertEqual(panel["datasource"]["uid"], "${datasource}")
            self.assertTrue(panel["targets"], panel["title"])
        self.assertNotIn("__inputs", DASHBOARD.read_text())

    def test_metrics_are_in_the_source(self):
        """What the tests with real processes ask for is there; this finds a name that no test asks for."""
        source = "".join(path.read_text() for folder in ("src", "apps") for path in (ROOT / folder).rglob("*.[ch]pp"))
        used = metric_names(RULES.read_text()) | {name for _, expr in queries() for name in metric_names(expr)}
        for name in sorted(used):
            self.assertTrue('"' + re.sub(r"_bucket$", "", name) in source, name)


if __name__ == "__main__":
    unittest.main()
