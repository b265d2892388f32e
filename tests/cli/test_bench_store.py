"""holdfast bench store: the shape of its answers, that it leaves nothing behind, and its errors. No bars: they need a quiet machine."""

import json
import os
import sqlite3
import tempfile
import unittest

from holdfast_process import CommandTest, run

# Others read these names: they never change.
SQLITE_ROWS = ["store.put100", "store.find"]


class BenchStore(CommandTest):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.file = os.path.join(self.directory.name, "bench.db")

    def tables(self):
        held = sqlite3.connect(self.file)
        try:
            return [row[0] for row in held.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        finally:
            held.close()

    def test_json(self):
        done = run("bench", "store", "--store", "sqlite://" + self.file, "--json", "--rounds", "2")
        self.assertIn(done.returncode, (0, 1))
        self.assertEqual(done.stderr, b"")
        made = json.loads(done.stdout)
        self.assertEqual(list(made), ["bench", "rows"])
        self.assertEqual(made["bench"], "store")
        self.assertEqual([row["name"] for row in made["rows"]], SQLITE_ROWS)
        for row in made["rows"]:
            self.assertEqual(list(row), ["name", "ours", "floor", "unit", "ratio", "bar", "holds"])
            self.assertEqual(row["unit"], "ns")
            self.assertGreater(row["ours"], 0)
            self.assertAlmostEqual(row["ratio"], row["ours"] / row["floor"], delta=0.01 * row["ratio"])
        self.assertEqual(done.returncode == 0, all(row["holds"] for row in made["rows"]))

    def test_leaves_the_tables_of_others_and_none_of_its_own(self):
        held = sqlite3.connect(self.file)
        held.execute("CREATE TABLE FAILOVER_STORE (a)")
        held.commit()
        held.close()
        done = run("bench", "store", "--store", "sqlite://" + self.file, "--rounds", "1")
        self.assertIn(done.returncode, (0, 1))
        lines = done.stdout.decode().splitlines()
        self.assertEqual(lines[0].split(), ["name", "ours", "floor", "unit", "ratio", "bar", "holds"])
        self.assertEqual([line.split()[0] for line in lines[1:]], SQLITE_ROWS)
        self.assertEqual(self.tables(), ["FAILOVER_STORE"])

    def test_policies(self):
        done = run("bench", "store", "--policies", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        made = json.loads(done.stdout)
        self.assertEqual(made["bench"], "store.policies")
        for row in made["rows"]:
            self.assertEqual(list(row), ["trace", "capacity", "lru", "s3_fifo", "w_tinylfu"])
        # The requests come from a fixed seed: what decided for S3-FIFO decides again.
        by_trace = {(row["trace"], row["capacity"]): row for row in made["rows"]}
        for trace in ("zipf 0.99", "zipf 0.70", "zipf 0.99 + scans"):
            for capacity in (1000, 10000):
                row = by_trace[trace, capacity]
                self.assertGreater(row["s3_fifo"], row["lru"])
                self.assertGreater(row["s3_fifo"], row["w_tinylfu"])

    def refused(self, code, *words):
        done = run("bench", "store", *words)
        self.assertEqual(done.returncode, code)
        self.assertEqual(done.stdout, b"")
        self.assertEqual(len(done.stderr.decode().splitlines()), 1)
        return done.stderr.decode()

    def test_errors(self):
        self.refused(2)
        self.assertIn("no client library", self.refused(2, "--store", "memory:"))
        self.assertIn("nosuch", self.refused(2, "--store", "nosuch:thing"))
        self.refused(2, "--store", "sqlite:")
        self.refused(2, "--store", "sqlite://" + self.file, "--rounds", "0")
        self.refused(3, "--store", "sqlite://" + os.path.join(self.directory.name, "missing", "bench.db"))


if __name__ == "__main__":
    unittest.main()
