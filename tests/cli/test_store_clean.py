"""holdfast store clean: once, and as a daemon that shares the work by a lease."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import tempfile
import unittest

from holdfast_process import HOLDFAST, CommandTest


class StoreCleanTest(CommandTest):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.url = "sqlite:" + os.path.join(self.directory.name, "x.db")

    def put_expired(self, *keys):
        """Entries that have expired: written, then made so."""
        for key in keys:
            self.fine("store", "put", "--store", self.url, "--create-schema", "--name", "n", "--key", key, "--payload", "{}", "--expire", "1h")
        with contextlib.closing(sqlite3.connect(self.url.removeprefix("sqlite:"), timeout=30)) as database, database:
            database.execute("UPDATE FAILOVER_STORE SET EXPIRE_ON = AS_OF")

    def watch(self, *more):
        process = subprocess.Popen([HOLDFAST, "store", "clean", "--store", self.url, "--create-schema", "--watch", "--cron", "* * * * * *",
                                    "--jitter", "0s", "--json", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_once(self):
        self.put_expired("a", "b")
        self.assertEqual(self.fine_json("store", "clean", "--store", self.url, "--json"), {"removed": 2})
        self.assertEqual(self.fine("store", "clean", "--store", self.url), "removed 0\n")

    def test_watch_cleans_and_ends_when_asked(self):
        self.put_expired("a", "b")
        process = self.watch()
        first = json.loads(process.stdout.readline())
        self.assertEqual((first["result"], first["removed"], first["problem"]), ("cleaned", 2, ""))
        self.assertTrue(first["holder"])
        self.put_expired("c")
        while json.loads(process.stdout.readline())["removed"] != 1:
            pass
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertEqual(process.stderr.read(), b"")

    def test_two_that_watch_share_the_work(self):
        self.put_expired("a")
        one, two = self.watch(), self.watch()
        removed = 0
        for process in (one, two):
            line = json.loads(process.stdout.readline())
            self.assertIn(line["result"], ("cleaned", "held_elsewhere"), line)
            removed += line["removed"]
        self.assertEqual(removed, 1)

    def test_mistakes(self):
        self.assertIn("add --watch", self.refused("store", "clean", "--store", self.url, "--cron", "@hourly"))
        complaint = self.refused("store", "clean", "--store", self.url, "--create-schema", "--watch", "--cron", "0 61 * * * *")
        self.assertIn("minute", complaint)


if __name__ == "__main__":
    unittest.main()
