"""holdfast store: entries by hand, files that are not there, what the doctor says. SQLite here; servers are tested in C++."""

import json
import os
import pty
import sqlite3
import subprocess
import tempfile
import time
import unittest

from holdfast_process import HOLDFAST, CommandTest, run


class StoreTest(CommandTest):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.file = os.path.join(self.directory.name, "answers.db")
        self.url = "sqlite://" + self.file

    def store(self, command, *words):
        return ("store", command, "--store", self.url, *words)

    def put(self, key="FR", payload='{"name":"France"}', *more):
        return self.fine(*self.store("put", "--create-schema", "--name", "country", "--key", key, "--payload", payload, *more))

    def sql(self, *statements):
        held = sqlite3.connect(self.file)
        try:
            for each in statements:
                held.execute(each)
            held.commit()
        finally:
            held.close()


class Entries(StoreTest):
    def test_put_get_list_rm(self):
        self.put()
        self.assertEqual(self.fine(*self.store("get", "--name", "country", "--key", "FR")), '{"name":"France"}\n')
        held = self.fine_json(*self.store("get", "--name", "country", "--key", "FR", "--json"))
        self.assertEqual((held["name"], held["key"], held["payload"]), ("country", "FR", '{"name":"France"}'))
        self.assertEqual(len(self.fine(*self.store("list", "--name", "country")).splitlines()), 2)
        self.fine(*self.store("rm", "--name", "country", "--key", "FR"))
        self.assertEqual(run(*self.store("get", "--name", "country", "--key", "FR")).returncode, 1)
        self.assertEqual(run(*self.store("rm", "--name", "country", "--key", "FR")).returncode, 1)

    def test_put_says_when_a_newer_entry_stays(self):
        self.put()
        self.sql("UPDATE FAILOVER_STORE SET AS_OF = AS_OF + 60000000")  # a clock ahead by a minute: within max_skew
        done = run(*self.store("put", "--name", "country", "--key", "FR", "--payload", '"late"'))
        self.assertEqual(done.returncode, 1)
        self.assertIn("newer entry exists", done.stderr.decode())
        self.assertEqual(len(done.stderr.decode().splitlines()), 1)
        self.assertEqual(self.fine(*self.store("get", "--name", "country", "--key", "FR")), '{"name":"France"}\n')

    def test_a_payload_is_json_unless_it_is_raw(self):
        self.put()
        for bad in ("{", "France", "{'a':1}", '{"a":1} x', ""):
            self.assertIn("--raw", self.refused(*self.store("put", "--name", "country", "--key", "FR", "--payload", bad)))
        self.assertEqual(self.fine(*self.store("get", "--name", "country", "--key", "FR")), '{"name":"France"}\n')
        for good in ("5", '"x"', "null", "[1,2]"):
            self.put("k", good)
        self.put("raw", "France", "--raw")
        self.assertEqual(self.fine(*self.store("get", "--name", "country", "--key", "raw")), "France\n")

    def test_export_and_import(self):
        for key in ("FR", "DE", "\U0001f600"):
            self.put(key)
        text = self.fine(*self.store("export", "--name", "country"))
        self.assertEqual(len(text.splitlines()), 3)
        other = "sqlite://" + os.path.join(self.directory.name, "copy.db")
        self.fine("store", "import", "--store", other, "--create-schema", stdin=text)
        self.assertEqual(self.fine("store", "export", "--store", other, "--name", "country"), text)
        self.assertIn("line 2", self.refused("store", "import", "--store", other, stdin=text.splitlines()[0] + "\nnonsense\n"))

    def test_a_column_of_bytes(self):
        column = ("--payload-column", "bytes")
        self.put("FR", "France", "--raw", *column)
        self.assertEqual(self.fine(*self.store("get", "--name", "country", "--key", "FR", *column)), "France\n")
        self.assertEqual(self.fine(*self.store("doctor", *column)).splitlines()[-1], "all is well")
        self.assertIn("BLOB", self.fine("store", "schema", "--dialect", "sqlite", *column))
        text = self.fine(*self.store("export", "--name", "country", *column))
        other = "sqlite://" + os.path.join(self.directory.name, "copy.db")
        self.fine("store", "import", "--store", other, "--create-schema", *column, stdin=text)
        self.assertEqual(self.fine("store", "export", "--store", other, "--name", "country", *column), text)

    def test_import_names_the_lines_that_failed(self):
        self.put()
        line = json.loads(self.fine(*self.store("export", "--name", "country")))
        lines = "".join(json.dumps({**line, "key": key}) + "\n" for key in ("a", "b", "x" * 5000))
        self.assertIn("lines 1 to 3: ", self.refused(*self.store("import"), stdin=lines))

    def test_a_payload_does_not_drive_the_terminal(self):
        self.put("k", "a\x1b[2Jb", "--raw")
        words = self.store("get", "--name", "country", "--key", "k")
        self.assertEqual(self.fine(*words), "a\x1b[2Jb\n")
        ours, theirs = pty.openpty()
        self.assertEqual(subprocess.run([HOLDFAST, *words], stdout=theirs, timeout=60).returncode, 0)
        os.close(theirs)
        self.assertEqual(os.read(ours, 100).rstrip(), rb"a\x1b[2Jb")
        os.close(ours)

    def test_import_without_standard_input(self):
        self.put()
        script = f'"{HOLDFAST}" store import --store {self.url} <&-'
        done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60)
        self.assertIn("standard input", self.assert_complaint(done, 3))


class MissingFile(StoreTest):
    def test_no_command_makes_one_unless_told(self):
        which = ("--name", "country", "--key", "FR")
        for command, *words in (
            ("get", *which),
            ("list", "--name", "country"),
            ("rm", *which),
            ("stats",),
            ("clean",),
            ("export", "--name", "country"),
            ("import",),
            ("doctor",),
            ("put", *which, "--payload", "{}"),
        ):
            with self.subTest(command):
                self.assertIn("answers.db", self.refused(*self.store(command, *words)))
                self.assertEqual(os.listdir(self.directory.name), [])

    def test_parameters_of_the_url_stay(self):
        self.url += "?synchronous=normal"
        self.refused(*self.store("stats"))
        self.assertEqual(os.listdir(self.directory.name), [])
        self.put()
        self.fine(*self.store("stats"))


class Doctor(StoreTest):
    def test_all_is_well(self):
        self.put()
        text = self.fine(*self.store("doctor"))
        self.assertIn("SQLite 3.", text)
        self.assertIn("FAILOVER_STORE", text)
        self.assertTrue(text.endswith("all is well\n"), text)
        told = self.fine_json(*self.store("doctor", "--json"))
        self.assertEqual(list(told), ["dialect", "server", "tables", "skew_us", "skew_within_us", "usable", "findings"])
        self.assertEqual((told["dialect"], told["usable"], told["findings"], told["skew_us"]), ("sqlite", True, [], None))

    def test_a_warning_is_shown_with_its_cure_and_does_not_fail(self):
        self.put()
        self.sql("DROP INDEX IDX_FAILOVER_STORE_EXPIRE_ON")
        text = self.fine(*self.store("doctor"))
        self.assertIn("warning  ", text)
        self.assertTrue(text.endswith("\nusable\n"), text)
        (found,) = self.fine_json(*self.store("doctor", "--json"))["findings"]
        self.assertEqual(list(found), ["severity", "code", "problem", "sql", "advice"])
        self.assertEqual((found["severity"], found["code"]), ("warning", "expire_index"))
        for each in found["sql"]:
            self.assertIn(each + ";", text.replace("         ", ""))
        self.sql(*found["sql"])
        self.assertTrue(self.fine(*self.store("doctor")).endswith("all is well\n"))

    def test_what_is_wrong_fails(self):
        self.put()
        done = run(*self.store("doctor", "--prefix", "NOT_THERE_"))
        self.assertEqual((done.returncode, done.stderr), (1, b""))
        self.assertIn("failing  the table NOT_THERE_FAILOVER_STORE does not exist", done.stdout.decode())
        self.sql("ALTER TABLE FAILOVER_STORE DROP COLUMN PAYLOAD_CLASS")
        done = run(*self.store("doctor", "--json"))
        self.assertEqual(done.returncode, 1)
        told = json.loads(done.stdout)
        self.assertFalse(told["usable"])
        self.assertEqual(told["findings"][0]["severity"], "wrong")
        self.sql(*told["findings"][0]["sql"])
        self.fine(*self.store("doctor"))

    def test_what_cannot_be_reached(self):
        self.refused("store", "doctor", "--store", "postgresql://nobody@127.0.0.1:1/x", code=3)
        self.refused("store", "doctor", "--store", "mysql://nobody@127.0.0.1:1/x", code=3)
        told = self.refused("store", "get", "--store", "postgresql://nobody@127.0.0.1:1/x", "--name", "n", "--key", "k", code=3)
        self.assertIn("127.0.0.1:1", told)
        self.assertNotIn("yet", told, "a command does not wait for the database")
        self.refused("store", "doctor", "--store", "nosuch:x")
        self.refused("store", "doctor")


class Progress(StoreTest):
    def lines(self, count, first):
        made = {"name": "n", "as_of": "2024-01-01T00:00:00.000000Z", "expire_on": "2999-01-01T00:00:00.000000Z", "payload": "{}", "payload_class": ""}
        return "".join(json.dumps({**made, "key": str(first + i)}) + "\n" for i in range(count)).encode()

    def import_slowly(self, stderr):
        """Two batches, the second when the first was written and a little time has passed."""
        words = [HOLDFAST, *self.store("import", "--create-schema")]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=stderr)
        process.stdin.write(self.lines(500, 0))
        process.stdin.flush()
        self.wait_for(lambda: os.path.exists(self.file) and self.count() == 500)
        time.sleep(0.25)  # what progress waits for is time
        process.stdin.write(self.lines(500, 500))
        process.stdin.close()
        self.assertEqual(process.wait(60), 0)

    def count(self):
        held = sqlite3.connect(self.file)
        try:
            return held.execute("SELECT count(*) FROM FAILOVER_STORE").fetchone()[0]
        except sqlite3.OperationalError:
            return 0
        finally:
            held.close()

    def wait_for(self, condition):
        deadline = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_is_shown_on_a_terminal(self):
        ours, theirs = pty.openpty()
        self.import_slowly(theirs)
        os.close(theirs)
        shown = os.read(ours, 10000)
        os.close(ours)
        self.assertIn(b"\rimported 1,000", shown)
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown)

    def test_is_not_shown_elsewhere(self):
        with tempfile.TemporaryFile() as stderr:
            self.import_slowly(stderr)
            stderr.seek(0)
            self.assertEqual(stderr.read(), b"")


if __name__ == "__main__":
    unittest.main()
