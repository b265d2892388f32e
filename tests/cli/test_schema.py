"""holdfast schema: versions of tables in SQLite files. Servers: tests/contract/schema_sets_test.cpp."""

import json
import sqlite3
import tempfile
import unittest
from pathlib import Path

from holdfast_process import CommandTest, run

TABLES = Path(__file__).resolve().parents[1] / "vectors/schema_1/sqlite.sql"


class Schema(CommandTest):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name) / "app.db"
        self.url = f"sqlite:{self.path}"

    def sql(self, script):
        connection = sqlite3.connect(self.path)
        connection.executescript(script)
        connection.close()

    def rows(self, query):
        connection = sqlite3.connect(self.path)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def status(self, code=0):
        done = run("schema", "status", self.url, "--outbox-prefix", "{shop}", "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        return self.sets_of(done)

    def sets_of(self, done):
        """The sets that the tables of version 1 have."""
        sets = {each["set"]: each for each in json.loads(done.stdout)["sets"]}
        self.assertEqual(sets.pop("instances")["verdict"], "absent")
        return sets

    def upgrade(self, *words):
        return self.fine("schema", "upgrade", *words, self.url, "--outbox-prefix", "{shop}")

    def test_help(self):
        self.assertIn("upgrade", self.fine("schema", "--help"))
        self.assertIn("--dry-run", self.fine("schema", "upgrade", "--help"))
        self.refused("schema")
        self.refused("schema", "status")

    def test_tables_of_version_1(self):
        self.sql(TABLES.read_text())
        sets = self.status(code=0 if all(each["current"] == 1 for each in self.versions().values()) else 1)
        self.assertEqual({each["version"] for each in sets.values()}, {1})
        planned = self.upgrade("--dry-run")
        self.assertIn("HOLDFAST_SCHEMA", planned)
        self.assertEqual(self.rows("SELECT COUNT(*) FROM sqlite_master WHERE name = 'HOLDFAST_SCHEMA'"), [(0,)])
        self.assertEqual(self.upgrade(), planned)
        self.assertEqual({each["verdict"] for each in self.status().values()}, {"current"})
        self.assertEqual(self.upgrade().count("nothing to do"), 3)

    def versions(self):
        done = run("schema", "status", self.url, "--outbox-prefix", "{shop}", "--json")
        return self.sets_of(done)

    def test_table_for_people(self):
        self.sql(TABLES.read_text())
        self.upgrade()
        text = self.fine("schema", "status", self.url)
        lines = text.splitlines()
        self.assertEqual(lines[0].split(), ["set", "version", "program", "verdict", "tables"])
        self.assertEqual([line.split()[0] for line in lines[1:]], ["store", "sequences", "outbox", "instances"])
        self.assertIn("FAILOVER_STORE, HOLDFAST_LEASE", lines[1])
        self.assertIn("absent", lines[3])  # the name of the outbox was not given

    def test_nothing_there(self):
        self.sql("CREATE TABLE other (a)")
        done = run("schema", "status", self.url)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"no tables with these names", done.stderr)
        self.assertEqual(run("schema", "upgrade", self.url).returncode, 1)
        self.assertEqual(self.rows("SELECT COUNT(*) FROM sqlite_master"), [(1,)])

    def test_newer_tables(self):
        self.fine("seq", "next", "--store", self.url, "--create-schema", "--name", "a")
        self.sql("UPDATE HOLDFAST_SCHEMA SET VERSION = 99")
        self.assertEqual(self.status(code=1)["sequences"]["verdict"], "newer")
        for words in [("seq", "next", "--store", self.url, "--name", "a"), ("schema", "upgrade", self.url)]:
            line = self.refused(*words)
            self.assertIn("schema version 99", line)
            self.assertIn("update the program", line)

    def test_schema_commands_print_the_version(self):
        for group in ["store", "seq", "outbox"]:
            for dialect in ["sqlite", "postgresql", "mysql", "mariadb"]:
                text = self.fine(group, "schema", "--dialect", dialect)
                self.assertIn("CREATE TABLE IF NOT EXISTS HOLDFAST_SCHEMA", text)
                self.assertEqual(text.count("INTO HOLDFAST_SCHEMA"), 1)
        self.sql(self.fine("seq", "schema", "--dialect", "sqlite"))
        self.assertEqual(self.status()["sequences"]["verdict"], "current")

    def test_refusals(self):
        self.refused("schema", "status", "memory:")
        self.refused("schema", "status", "sqlite:mistyped.db")
        self.refused("schema", "status", "sqlite:mistyped.db", "--prefix", "x;y")


if __name__ == "__main__":
    unittest.main()
