"""holdfast outbox recur, and workers that are killed while recurring events are due."""

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

from holdfast_process import HOLDFAST, CommandTest, run


class Recur(CommandTest):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.at = ["--outbox", f"sqlite:{self.path('app.db')}", "--create-schema"]

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def add(self, name, cron, *words, type="t"):
        return self.fine("outbox", "recur", "add", name, cron, *self.at, "--type", type, "--payload", "{}", *words).strip()

    def list(self):
        return [json.loads(line) for line in self.fine("outbox", "recur", "list", *self.at, "--json").splitlines()]

    def test_add_list_remove(self):
        nightly = ("nightly", "0 3 * * *", "--zone", "Europe/Paris", "--overlap", "skip", "--catch-up", "all", "--catch-up-limit", "7",
                   "--tolerance", "90s", "--key", "k")
        self.assertEqual(self.add(*nightly), "added")
        self.assertEqual(self.add(*nightly), "unchanged")
        self.assertEqual(self.add("nightly", "0 4 * * *"), "changed")
        self.assertEqual(self.add(*nightly), "changed")
        done = self.fine_json("outbox", "recur", "add", "b", "@daily", *self.at, "--type", "t", "--payload", "{}", "--json")
        self.assertEqual(done, {"name": "b", "status": "added"})
        b, first = self.list()
        self.assertEqual(b["name"], "b")
        self.assertEqual({name: first[name] for name in ("name", "cron", "zone", "overlap", "catch_up", "catch_up_limit", "tolerance_ms", "key",
                                                         "published", "skipped")},
                         {"name": "nightly", "cron": "0 3 * * *", "zone": "Europe/Paris", "overlap": "skip", "catch_up": "all",
                          "catch_up_limit": 7, "tolerance_ms": 90000, "key": "k", "published": 0, "skipped": 0})
        table = self.fine("outbox", "recur", "list", *self.at)
        self.assertIn("Europe/Paris", table)
        stats = self.fine_json("outbox", "stats", *self.at, "--json")
        self.assertEqual([each["name"] for each in stats["recurring"]], ["b", "nightly"])
        self.assertEqual(stats["tickets"], 0)
        self.assertIn("nightly", self.fine("outbox", "stats", *self.at))
        self.assertEqual(self.fine("outbox", "recur", "remove", "nightly", *self.at), "removed\n")
        again = run("outbox", "recur", "remove", "nightly", *self.at)
        self.assertEqual((again.returncode, again.stdout), (1, b"unknown\n"))
        self.assertEqual([each["name"] for each in self.list()], ["b"])

    def test_what_is_refused(self):
        def told(*words):
            return self.refused("outbox", "recur", "add", *words, *self.at, "--type", "t", "--payload", "{}")

        self.assertIn("not 6", told("n", "* * *"))
        self.assertIn("minute", told("n", "99 * * * *"))
        self.assertIn("time zone", told("n", "* * * * *", "--zone", "Mars/Base"))
        self.assertIn("time zone", told("n", "* * * * *", "--zone", "../../etc/passwd"))
        self.assertIn("name", told("", "* * * * *"))
        self.assertIn("1 to 1000", self.refused("outbox", "recur", "add", "n", "* * * * *", *self.at, "--type", "t", "--payload", "{}",
                                                "--catch-up-limit", "0").replace("between 1 and", "1 to"))
        self.assertEqual(self.list(), [])

    def test_a_damaged_one_is_shown(self):
        self.add("good", "* * * * *")
        self.add("bad", "* * * * *")
        with contextlib.closing(sqlite3.connect(self.path("app.db"))) as db, db:
            changed = db.execute("UPDATE holdfast_OUTBOX_TICKET SET BODY = 'x', EXPIRES = 1 WHERE TICKET = 'bad'").rowcount
        self.assertEqual(changed, 1)
        bad, good = self.list()
        self.assertIn("cannot be read", bad["problem"])
        self.assertNotIn("problem", good)
        done = run("outbox", "work", *self.at, "--until-empty", "--file", self.path("out"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"cannot be published", done.stderr)
        self.assertIn('"well":true', self.fine("outbox", "fsck", *self.at, "--repair", "--json"))
        self.assertEqual(len(self.list()), 2, "fsck leaves them alone")
        self.assertEqual(self.add("bad", "* * * * *"), "changed")

    def test_killed_workers_publish_each_due_time_once(self):
        """Workers of several processes are killed at any time; every second has one event."""
        self.add("tick", "* * * * * *", "--tolerance", "1h")
        script = self.path("deliver")
        with open(script, "w") as file:
            file.write(f"#!/bin/sh\nline=$(cat)\nprintf '%s\\n' \"$line\" >> {self.path('out')}\n")
        os.chmod(script, 0o755)

        def start():
            return subprocess.Popen([HOLDFAST, "outbox", "work", *self.at, "--compete", "--lease", "2s", "--exec", script], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)

        choose = random.Random(3)
        workers = [start() for _ in range(3)]
        try:
            end = time.monotonic() + 8
            while time.monotonic() < end:
                time.sleep(choose.random() * 0.3)
                i = choose.randrange(len(workers))
                workers[i].send_signal(signal.SIGKILL)
                workers[i].wait()
                workers[i] = start()
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        (now,) = self.list()
        self.fine("outbox", "recur", "remove", "tick", *self.at)
        # What is leased comes again when its lease ends.
        deadline = time.monotonic() + 120
        while self.fine_json("outbox", "stats", *self.at, "--json")["events"] > 0 and time.monotonic() < deadline:
            run("outbox", "work", *self.at, "--until-empty", "--compete", "--exec", script)
            time.sleep(0.2)
        self.assertGreaterEqual(now["published"], 3)
        self.assertEqual(now["skipped"], 0)
        stats = self.fine_json("outbox", "stats", *self.at, "--json")
        self.assertEqual((stats["duplicates"], stats["published"]), (0, now["published"]))
        due = {}
        with open(self.path("out")) as file:
            for line in file:
                # A killed handler may have written half a line.
                with contextlib.suppress(json.JSONDecodeError):
                    event = json.loads(line)
                    due.setdefault(event["headers"]["Holdfast-Due"], set()).add(event["id"])
        self.assertEqual(len(due), now["published"])
        self.assertEqual({len(ids) for ids in due.values()}, {1})


if __name__ == "__main__":
    unittest.main()
