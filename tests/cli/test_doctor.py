"""holdfast doctor: one verdict for everything on a database, the same as that of the code that uses it. PostgreSQL: tests/integration."""

import json
import os
import sqlite3
import subprocess
import tempfile
import time
import unittest

from holdfast_process import CommandTest, run


class DoctorTest(CommandTest):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.file = os.path.join(self.directory, "app.db")
        self.url = "sqlite://" + self.file

    def create_everything(self):
        self.fine("store", "put", "--store", self.url, "--create-schema", "--name", "n", "--key", "k", "--payload", "{}")
        self.fine("seq", "next", "--store", self.url, "--create-schema", "--name", "ids")
        self.fine("outbox", "publish", "--outbox", self.url, "--create-schema", "--type", "t", "--payload", "{}")

    def sql(self, *statements):
        connection = sqlite3.connect(self.file)
        try:
            for statement in statements:
                connection.execute(statement)
            connection.commit()
        finally:
            connection.close()

    def verdict(self, code, *words):
        """The parts of the report by name."""
        done = run(*(words or ("doctor", self.url)), "--json")
        self.assertEqual((done.returncode, done.stderr), (code, b""), done.stdout)
        report = json.loads(done.stdout)
        self.assertEqual(report["usable"], code == 0)
        return {part["part"]: part for part in report["parts"]}


class OnSql(DoctorTest):
    def test_all_is_well(self):
        self.create_everything()
        text = self.fine("doctor", self.url)
        self.assertTrue(text.endswith("\nall is well\n"), text)
        self.assertEqual([line.split()[0] for line in text.splitlines() if line][:5], ["server", "store", "sequences", "outbox", "instances"])
        parts = self.verdict(0)
        self.assertIn("SQLite 3.", parts["server"]["facts"]["server"])
        self.assertEqual(parts["store"]["facts"]["version"], "1")
        self.assertEqual(parts["outbox"]["facts"]["events"], "1")
        self.assertFalse(parts["instances"]["exists"])

    def test_parts_that_do_not_exist_are_not_judged(self):
        self.fine("seq", "next", "--store", self.url, "--create-schema", "--name", "ids")
        parts = self.verdict(0)
        self.assertEqual([name for name, part in parts.items() if part["exists"]], ["server", "sequences"])
        self.assertIn("store      absent\n", self.fine("doctor", self.url))

    def test_nothing_exists(self):
        self.sql("CREATE TABLE other (a)")
        done = run("doctor", self.url)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"--prefix", done.stderr)

    def test_the_table_of_leases(self):
        """Without it, clean --watch fails."""
        self.create_everything()
        self.sql("DROP TABLE HOLDFAST_LEASE")
        done = run("store", "doctor", "--store", self.url)
        self.assertEqual(done.returncode, 1)
        self.assertIn("failing  the table HOLDFAST_LEASE does not exist", done.stdout.decode())
        finding = self.verdict(1)["store"]["findings"][0]
        self.assertEqual(finding["code"], "lease_table")
        self.sql(*finding["sql"])
        self.verdict(0)
        self.sql("DROP TABLE HOLDFAST_LEASE", "CREATE TABLE HOLDFAST_LEASE (LEASE_NAME TEXT)")
        self.assertIn("lacks OWNER, HELD_UNTIL and FENCE", self.verdict(1)["store"]["findings"][0]["problem"])

    def test_a_table_of_another_program(self):
        self.sql("CREATE TABLE SEQUENCES (NAME TEXT, VALUE INTEGER)")
        done = run("seq", "doctor", "--store", self.url)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not a table of sequences", done.stdout.decode())
        self.assertFalse(self.verdict(1)["sequences"]["usable"])

    def test_the_outbox(self):
        self.create_everything()
        self.assertTrue(self.fine("outbox", "doctor", "--outbox", self.url).endswith("all is well\n"))
        self.fine("outbox", "pause", "--outbox", self.url)
        parts = self.verdict(0, "outbox", "doctor", "--outbox", self.url)
        self.assertEqual([finding["code"] for finding in parts["outbox"]["findings"]], ["paused"])
        self.sql("DROP TABLE holdfast_OUTBOX_TICKET")
        for words in ((), ("outbox", "doctor", "--outbox", self.url)):
            finding = self.verdict(1, *words)["outbox"]["findings"][0]
            self.assertEqual((finding["severity"], finding["code"]), ("failing", "table"))
        self.sql(*finding["sql"])
        self.verdict(0)
        self.verdict(1, "outbox", "doctor", "--outbox", self.url, "--prefix", "{other}")

    def test_lanes_are_found(self):
        self.fine("outbox", "publish", "--outbox", self.url, "--create-schema", "--lanes", "4", "--type", "t", "--payload", "{}")
        self.assertEqual(self.verdict(0)["outbox"]["facts"]["lanes"], "4")

    def test_a_newer_version(self):
        self.create_everything()
        self.sql("UPDATE HOLDFAST_SCHEMA SET VERSION = 99")
        finding = self.verdict(1)["outbox"]["findings"][0]
        self.assertEqual((finding["code"], finding["advice"]), ("version", "update the program"))

    def test_refusals(self):
        self.refused("doctor")
        self.refused("doctor", "memory:")
        self.assertIn("mistyped.db", self.refused("doctor", "sqlite:mistyped.db"))
        self.refused("doctor", "postgresql://nobody@127.0.0.1:1/x", code=3)
        self.refused("outbox", "doctor", "--outbox", "redis://127.0.0.1:1", code=3)


class OnRedis(DoctorTest):
    def start(self, *settings):
        socket = os.path.join(self.directory, "redis.sock")
        server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--dir", self.directory, "--save", "", "--appendonly", "yes",
                                   "--appendfsync", "always", *settings], stdout=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        deadline = time.monotonic() + 30
        while not os.path.exists(socket) or run("redis", "doctor", "redis+unix://" + socket).returncode == 3:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        self.url = "redis+unix://" + socket

    def test_a_server_that_may_evict(self):
        """The outbox refuses it, so it is not fit, whether it has a limit of memory or not."""
        self.start("--maxmemory-policy", "allkeys-lru")
        self.assertIn("maxmemory-policy", self.refused("outbox", "publish", "--outbox", self.url, "--type", "t", "--payload", "{}"))
        done = run("redis", "doctor", self.url)
        self.assertEqual(done.returncode, 1)
        self.assertIn("bad   with a maxmemory it would evict any key", done.stdout.decode())
        self.assertFalse(self.verdict(1, "outbox", "doctor", "--outbox", self.url)["server"]["usable"])

    def test_sequences_and_an_outbox(self):
        self.start()
        self.fine("outbox", "publish", "--outbox", self.url, "--lanes", "2", "--type", "t", "--payload", "{}")
        self.fine("seq", "next", "--store", self.url, "--fence", "none", "--name", "a")
        parts = self.verdict(0)
        self.assertEqual(list(parts), ["server", "sequences", "outbox"])
        self.assertEqual((parts["sequences"]["facts"]["fences"], parts["outbox"]["facts"]["lanes"]), ("none", "2"))

    def test_a_server_that_forgets(self):
        self.start("--appendonly", "no")
        run("seq", "next", "--store", self.url, "--fence", "none", "--name", "a", "--allow-unsafe")
        self.assertEqual(self.verdict(1)["sequences"]["findings"][0]["code"], "unsafe_setting")


if __name__ == "__main__":
    unittest.main()
