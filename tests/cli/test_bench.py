"""holdfast bench: its rows, its errors, and that it removes what it creates. On Redis: tests/integration/redis_doctor_test.cpp."""

import os
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

from holdfast_process import HOLDFAST, CommandTest

ROWS = {
    "store": [("put", "puts/s"), ("put_batch", "entries/s"), ("find", "finds/s")],
    "failover": [("live", "calls/s"), ("stale", "calls/s")],
    "sequence": [("next", "ids/s"), ("next_adaptive", "ids/s"), ("handle", "ids/s")],
    "outbox": [("publish", "publishes/s"), ("publish_batch", "events/s"), ("deliver", "deliveries/s"), ("deliver_one", "deliveries/s")],
}


class Bench(CommandTest):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.file = os.path.join(self.directory.name, "app.db")

    def measured(self, name, url, *words):
        option = "--outbox" if name == "outbox" else "--store"
        printed = self.fine_json("bench", name, option, url, "--seconds", "1", "--json", *words)
        self.assertEqual(list(printed), ["bench", "database", "payload", "threads", "seconds", "rows"])
        self.assertEqual((printed["bench"], printed["seconds"]), (name, 1))
        self.assertEqual([(row["name"], row["unit"]) for row in printed["rows"]], ROWS[name])
        for row in printed["rows"]:
            self.assertEqual(list(row), ["name", "rate", "unit", "count", "p50_us", "p99_us"])
            self.assertGreater(row["rate"], 0, row)
            self.assertGreater(row["count"], 0, row)
            self.assertGreaterEqual(row["p99_us"], row["p50_us"], row)
        return printed

    def create_file(self):
        database = sqlite3.connect(self.file)
        database.execute("CREATE TABLE FAILOVER_STORE (a)")
        database.commit()
        database.close()

    def tables(self):
        database = sqlite3.connect(self.file)
        try:
            return [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
        finally:
            database.close()

    def test_in_memory(self):
        printed = self.measured("failover", "memory:", "--payload", "100", "--threads", "2")
        self.assertEqual((printed["database"], printed["payload"], printed["threads"]), ("memory", 100, 2))

    def test_removes_its_tables_and_no_others(self):
        self.create_file()
        for name in ROWS:
            self.assertEqual(self.measured(name, "sqlite://" + self.file)["database"], "sqlite")
            self.assertEqual(self.tables(), ["FAILOVER_STORE"])

    def test_removes_a_file_that_did_not_exist(self):
        lines = self.fine("bench", "store", "--store", "sqlite://" + self.file, "--seconds", "1").splitlines()
        self.assertEqual(lines[0].split(), ["name", "rate", "unit", "p50", "p99"])
        self.assertEqual([line.split()[0] for line in lines[1:]], [name for name, _ in ROWS["store"]])
        self.assertEqual(os.listdir(self.directory.name), [])

    def test_removes_its_tables_when_interrupted(self):
        self.create_file()
        process = subprocess.Popen([HOLDFAST, "bench", "store", "--store", "sqlite://" + self.file, "--seconds", "600"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while self.tables() == ["FAILOVER_STORE"] and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3)
        self.assertIn(b"interrupted; ", printed)
        self.assertEqual(printed.count(b"\n"), 1)
        self.assertEqual(self.tables(), ["FAILOVER_STORE"])

    def test_errors(self):
        self.assertIn("use store", self.refused("bench"))
        self.assertIn("--store", self.refused("bench", "store"))
        self.assertIn("--outbox", self.refused("bench", "outbox"))
        self.assertIn("nosuch", self.refused("bench", "store", "--store", "nosuch:thing"))
        self.assertIn("Redis", self.refused("bench", "failover", "--store", "redis://127.0.0.1:1"))
        self.assertIn("127.0.0.1:1", self.refused("bench", "outbox", "--outbox", "redis://127.0.0.1:1", code=3))
        self.refused("bench", "store", "--store", "sqlite://" + os.path.join(self.directory.name, "missing", "app.db"), code=3)
        self.assertIn("--payload", self.refused("bench", "sequence", "--store", "memory:", "--payload", "5"))
        for option in ("--payload", "--seconds", "--threads"):
            for value in ("0", "-1", "x", "100000000"):
                self.assertIn(option, self.refused("bench", "store", "--store", "memory:", option, value))
        self.assertEqual(os.listdir(self.directory.name), [])


if __name__ == "__main__":
    unittest.main()
