"""The rules and the dashboard of packaging/, as the tests read them."""

import json
import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "packaging/prometheus/holdfast.rules.yml"
SCRAPE = ROOT / "packaging/prometheus/holdfast.scrape.yml"
DASHBOARD = ROOT / "packaging/grafana/holdfast.json"

# A proxy of the machine must not see the requests of the tests.
for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
    os.environ.pop(variable, None)


class Alert:
    def __init__(self, text):
        self.name = re.match(r"\S+", text)[0]
        duration = re.search(r"^        for: (\d+)([smh])$", text, re.M)
        self.pending = int(duration[1]) * {"s": 1, "m": 60, "h": 3600}[duration[2]] if duration else 0
        self.text = text

    def field(self, name):
        found = re.search(rf'^ +{name}: "?(.*?)"?$', self.text, re.M)
        return found[1] if found else ""


def alerts():
    """Every alert of the file, by its name. The form of the file is simple: no parser for YAML is needed."""
    parts = RULES.read_text().split("      - alert: ")[1:]
    return {alert.name: alert for alert in map(Alert, parts)}


def records():
    return re.findall(r"- record: (\S+)", RULES.read_text())


def metric_names(text):
    return set(re.findall(r"\bholdfast_[a-z_]+", text))


def dashboard():
    return json.loads(DASHBOARD.read_text())


def queries():
    """(title of the panel, expression) of everything that the dashboard asks."""
    content = dashboard()
    result = [(panel["title"], target["expr"]) for panel in content["panels"] for target in panel.get("targets", [])]
    return result + [("annotation " + each["name"], each["expr"]) for each in content["annotations"]["list"]]
