"""A running `holdfast serve`, a worker that takes its events, and the instances of other processes, for the tests of the console."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

from browser import LONG, free_port, wait_for

HOLDFAST = os.environ["HOLDFAST"]


class Server:
    """holdfast serve with tokens, on a port that it keeps after a restart."""

    def __init__(self, directory, config):
        self.directory, self.port = Path(directory), free_port()
        self.origin = f"http://127.0.0.1:{self.port}"
        (self.directory / "serve.toml").write_text(config)
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


class Instances:
    """Rows as reporters write them, for a store on SQLite. They stay fresh: the time between reports is an hour."""

    def __init__(self, file):
        self.database = sqlite3.connect(file, isolation_level=None)
        self.database.execute("PRAGMA busy_timeout = 60000")
        self.database.execute(
            "CREATE TABLE IF NOT EXISTS HOLDFAST_INSTANCE (INSTANCE VARCHAR(100) NOT NULL, KIND VARCHAR(20) NOT NULL, STARTED INTEGER NOT NULL, "
            "SEEN INTEGER NOT NULL, INTERVAL_MS INTEGER NOT NULL, STATE TEXT NOT NULL, PRIMARY KEY (INSTANCE))"
        )

    def report(self, *instances):
        """Writes `(name, points)`; a point is the object of a report."""
        now = int(time.time() * 1_000_000)
        rows = [(name, "engine", now, now, 3_600_000, json.dumps({"health": {"healthy": True}, "points": points})) for name, points in instances]
        self.database.executemany("INSERT OR REPLACE INTO HOLDFAST_INSTANCE VALUES (?, ?, ?, ?, ?, ?)", rows)
