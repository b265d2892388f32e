"""holdfast store: entries by hand, files that are not there, what the doctor says. SQLite here; servers are tested in C++."""

import json
import os
import pty
import signal
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
    def test_read_only_file_in_a_read_only_directory(self):
        """As another user: root may write everything."""
        with tempfile.TemporaryDirectory() as parent:
            os.chmod(parent, 0o755)
            directory = os.path.join(parent, "a%b")
            os.mkdir(directory)
            file = os.path.join(directory, "answers.db")
            self.fine("store", "put", "--store", f"sqlite://{directory.replace('%', '%25')}/answers.db", "--create-schema",
                      "--name", "n", "--key", "k", "--payload", "1")
            os.chmod(file, 0o444)
            os.chmod(directory, 0o555)
            user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
            at = ("--store", f"sqlite://{directory.replace('%', '%25')}/answers.db")
            entry = ("--name", "n", "--key", "k")
            self.assertEqual(self.fine("store", "get", *at, *entry, **user), "1\n")
            self.assertEqual(self.fine("store", "get", "--store", at[1] + "?mode=ro", *entry, **user), "1\n")
            self.assertIn("read-only; ", self.refused("store", "put", *at, *entry, "--payload", "2", code=3, **user))
            os.chmod(directory, 0o755)

    def test_put_get_list_rm(self):
        self.put()
        self.assertEqual(self.fine(*self.store("get", "--name", "country", "--key", "FR")), '{"name":"France"}\n')
        held = self.fine_json(*self.store("get", "--name", "country", "--key", "FR", "--json"))
        self.assertEqual((held["name"], held["key"], held["payload"]), ("country", "FR", '{"name":"France"}'))
        self.assertEqual(len(self.fine(*self.store("list", "--name", "country")).splitlines()), 2)
        self.fine(*self.store("rm", "--name", "country", "--key", "FR"))
        for words, output in ((["get"], b""), (["rm"], b""), (["get", "--json"], b"null\n"), (["rm", "--json"], b'{"removed":0}\n')):
            done = run(*self.store(*words, "--name", "country", "--key", "FR"))
            self.assertEqual((done.returncode, done.stdout, done.stderr), (1, output, b"holdfast: warning: no entry country FR\n"))

    def test_get_says_why_it_prints_nothing(self):
        self.put()
        self.sql("UPDATE FAILOVER_STORE SET EXPIRE_ON = AS_OF")
        done = run(*self.store("get", "--name", "country", "--key", "FR"))
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"the entry expired at 2", done.stderr)
        self.fine(*self.store("put", "--name", "country", "--key", "XX", "--tombstone"))
        done = run(*self.store("get", "--name", "country", "--key", "XX"))
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"tombstone", done.stderr)

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


class Import(StoreTest):
    line = {"name": "country", "key": "a", "as_of": "2024-01-01T00:00:00Z", "expire_on": "2999-01-01T00:00:00Z", "payload": "{}", "payload_class": ""}

    def lines(self, *changes):
        return "".join(json.dumps({**self.line, **change}) + "\n" for change in changes)

    def imported(self, code, *changes):
        done = run(*self.store("import", "--create-schema", "--json"), stdin=self.lines(*changes))
        self.assertEqual((done.returncode, done.stderr), (code, b""))
        return json.loads(done.stdout)

    def test_says_what_it_skipped(self):
        expired = {"key": "old", "expire_on": "2024-01-02T00:00:00Z"}
        self.assertEqual(self.imported(1, expired), {"read": 1, "written": 0, "expired": 1, "older": 0})
        self.assertEqual(self.imported(0, {}, expired), {"read": 2, "written": 1, "expired": 1, "older": 0})
        self.assertEqual(self.imported(1, {"as_of": "2023-01-01T00:00:00Z"}), {"read": 1, "written": 0, "expired": 0, "older": 1})
        self.assertEqual(self.imported(0, {}), {"read": 1, "written": 1, "expired": 0, "older": 0})
        text = self.fine(*self.store("import"), stdin=self.lines({}, {"key": "b"}, {"key": "b", "as_of": "2023-01-01T00:00:00Z"}))
        self.assertEqual(text, "written 2, skipped 1 (expired 0, older 1)\n")

    def test_times_of_rfc_3339(self):
        for time, stored in (
            ("2024-01-31T12:00:00Z", "2024-01-31T12:00:00.000000Z"),
            ("2024-01-31t12:00:00.5z", "2024-01-31T12:00:00.500000Z"),
            ("2024-01-31 12:00:00.123456789+02:00", "2024-01-31T10:00:00.123456Z"),
            ("2024-01-31T12:00:00-00:30", "2024-01-31T12:30:00.000000Z"),
        ):
            with self.subTest(time=time):
                self.imported(0, {"key": time, "as_of": time})
                held = self.fine_json(*self.store("get", "--name", "country", "--key", time, "--json"))
                self.assertEqual(held["as_of"], stored)
        for bad in ("2024-01-31T12:00:00", "2024-01-31T12:00:00.Z", "2024-02-30T12:00:00Z", "2024-01-31T24:00:00Z", "2024-01-31T12:00:00+2:00",
                    "2024-01-31T12:00:00Z ", "2024-01-31T12:00:00.1234567890Z", ""):
            with self.subTest(time=bad):
                self.assertIn("line 1", self.refused(*self.store("import"), stdin=self.lines({"as_of": bad})))

    def test_a_mistake_names_the_file(self):
        self.put()
        path = os.path.join(self.directory.name, "country.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.lines({}) + "nonsense\n")
        self.assertIn(path + ", line 2", self.refused(*self.store("import", path)))

    def test_is_stopped_by_a_signal(self):
        """What was read is written, and the message says how far it came."""
        process = subprocess.Popen([HOLDFAST, *self.store("import", "--create-schema")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        process.stdin.write(self.lines({}, {"key": "b"}).encode())
        process.stdin.flush()
        while not os.path.exists(self.file):
            time.sleep(0.01)
        time.sleep(0.1)  # for the two lines; the result is the same without
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)  # before the end of its input, which would end it, too
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (3, b""))
        self.assertRegex(err.decode(), r"^holdfast: stopped after it imported [0-2]; run it again to go on\n$")


class Names(StoreTest):
    def test_names(self):
        self.put()
        self.put("DE", '"Germany"')
        self.put("old", '"x"', "--expire", "1s")
        self.sql("UPDATE FAILOVER_STORE SET AS_OF = AS_OF - 90000000, EXPIRE_ON = EXPIRE_ON - 60000000 WHERE FAILOVER_KEY = 'old'")
        self.fine(*self.store("put", "--name", "a-name-that-is-longer", "--key", "k", "--tombstone"))
        rows = [json.loads(line) for line in self.fine(*self.store("names", "--json")).splitlines()]
        self.assertEqual([(row["name"], row["entries"], row["expired"]) for row in rows], [("a-name-that-is-longer", 1, 0), ("country", 3, 1)])
        self.assertEqual(rows[1]["bytes"], len('{"name":"France"}"Germany""x"'))
        lines = self.fine(*self.store("names")).splitlines()
        self.assertEqual(lines[0].split(), ["name", "entries", "bytes", "expired", "oldest", "next", "expiry"])
        self.assertEqual(lines[2].split()[:5], ["country", "3", "29", "B", "1"])
        self.assertEqual(len(lines[0]), max(map(len, lines)), "the columns are as wide as their cells")
        self.assertEqual(lines[2].split()[5:7], ["1", "m"])
        self.assertIn("+", self.fine(*self.store("names", "--read", "1")))

    def test_an_empty_store(self):
        self.put()
        self.fine(*self.store("rm", "--name", "country", "--key", "FR"))
        self.assertEqual(run(*self.store("names")).returncode, 1)

    def test_export_all(self):
        self.put()
        self.fine(*self.store("put", "--name", "other", "--key", "k", "--payload", "1"))
        text = self.fine(*self.store("export", "--all"))
        self.assertEqual([json.loads(line)["name"] for line in text.splitlines()], ["country", "other"])
        self.assertIn("--all", self.refused(*self.store("export")))
        self.assertIn("not both", self.refused(*self.store("export", "--all", "--name", "n")))


class Options(StoreTest):
    def test_options_that_exclude_each_other(self):
        self.put()
        for words in (
            ("get", "--name", "n", "--key", "k", "--args", "a"),
            ("put", "--name", "n", "--key", "k", "--payload", "1", "--tombstone"),
            ("put", "--name", "n", "--key", "k", "--payload", "1", "--payload-file", "x"),
            ("rm", "--name", "n", "--key", "k", "--match", "*"),
        ):
            with self.subTest(words=words):
                self.assertIn("give one of them, not both", self.refused(*self.store(*words)))
        self.assertIn("not several", self.refused(*self.store("put", "--name", "n", "--key", "k", "--payload", "1", "--payload-file", "x", "--tombstone")))
        self.assertIn("not both", self.refused("store", "schema", "--published", "--dialect", "sqlite"))

    def test_payload_file(self):
        self.put()
        words = self.store("put", "--name", "country", "--key", "DE", "--payload-file", "-")
        stored = self.fine_json(*words, "--json", stdin='{"name":"Germany"}')
        self.assertEqual((stored["key"], stored["payload"]), ("DE", '{"name":"Germany"}'))
        self.refused(*words, stdin="Germany")
        self.refused(*self.store("put", "--name", "n", "--key", "k", "--payload-file", "/no-such-file"))

    def test_rm_with_a_pattern(self):
        for key in ("FR", "FI", "DE"):
            self.put(key)
        self.assertEqual(self.fine(*self.store("rm", "--name", "country", "--match", "F*")), "removed 2\n")
        self.assertEqual(run(*self.store("rm", "--name", "country", "--match", "F*")).returncode, 1)
        self.assertEqual(self.fine_json(*self.store("rm", "--name", "country", "--match", "*", "--json")), {"removed": 1})

    def test_sealed_payloads(self):
        ring = os.path.join(self.directory.name, "keys")
        with open(os.open(ring, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write("k1:" + "A" * 43 + "=\n")
        keys = ("--key-file", ring)
        self.fine(*self.store("put", "--create-schema", "--name", "s", "--key", "k", "--payload", '"secret"', *keys))
        self.assertEqual(self.fine(*self.store("get", "--name", "s", "--key", "k", *keys)), '"secret"\n')
        variable = {"RING": "k1:" + "A" * 43 + "="}
        self.assertEqual(self.fine(*self.store("get", "--name", "s", "--key", "k", "--key-variable", "RING"), env=variable), '"secret"\n')
        done = run(*self.store("get", "--name", "s", "--key", "k"))
        self.assertTrue(done.stdout.startswith(b"ENC(k1:"))
        self.assertIn(b"--key-file", done.stderr)
        self.assertIn("--key-file", self.refused(*self.store("put", "--name", "s", "--key", "other", "--payload", '"plain"')))
        # A copy keeps the sealed payloads, and opens them with a key ring.
        text = self.fine(*self.store("export", "--name", "s"))
        self.assertIn("ENC(k1:", text)
        self.assertIn('\\"secret\\"', self.fine(*self.store("export", "--name", "s", *keys)))
        other = "sqlite://" + os.path.join(self.directory.name, "copy.db")
        self.fine("store", "import", "--store", other, "--create-schema", stdin=text)
        self.assertEqual(self.fine("store", "get", "--store", other, "--name", "s", "--key", "k", *keys), '"secret"\n')


class MissingFile(StoreTest):
    def test_no_command_makes_one_unless_told(self):
        which = ("--name", "country", "--key", "FR")
        for command, *words in (
            ("get", *which),
            ("list", "--name", "country"),
            ("rm", *which),
            ("stats",),
            ("names",),
            ("clean",),
            ("export", "--name", "country"),
            ("import",),
            ("doctor",),
            ("put", *which, "--payload", "{}"),
        ):
            with self.subTest(command):
                self.assertIn("answers.db", self.refused(*self.store(command, *words)))
                self.assertEqual(os.listdir(self.directory.name), [])

    def test_a_file_that_is_no_database(self):
        """It is not a mistake of the command line: exit code 3."""
        with open(self.file, "w", encoding="utf-8") as file:
            file.write("not a database " * 100)
        for command, *words in (("get", "--name", "n", "--key", "k"), ("names",), ("doctor",)):
            self.assertIn("not an SQLite database", self.refused(*self.store(command, *words), code=3))

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
