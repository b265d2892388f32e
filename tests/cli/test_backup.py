"""holdfast backup and restore, and the exports and imports that they consist of."""

import json
import os
import sqlite3
import stat
import subprocess
import tempfile
import time
import unittest
from datetime import datetime, timezone

from holdfast_process import CommandTest, run


class TransferTest(CommandTest):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.url = self.database("app.db")
        self.other = self.database("copy.db")
        self.file = os.path.join(self.directory, "app.backup")

    def database(self, name):
        return "sqlite://" + os.path.join(self.directory, name)

    def outbox(self, command, *words, url=None, **more):
        return self.fine("outbox", command, "--outbox", url or self.url, *words, **more)

    def publish(self, *words, payload="{}"):
        return self.outbox("publish", "--create-schema", "--lanes", "2", "--payload", payload, *words).strip()

    def events(self, url=None):
        lines = self.outbox("list", "--lanes", "2", "--json", url=url).splitlines()
        return {event["id"]: event for event in map(json.loads, lines)}

    def park(self, *words):
        """Publishes an event, and parks it."""
        identity = self.publish(*words)
        run("outbox", "work", "--outbox", self.url, "--lanes", "2", "--until-empty", "--exec", "echo broken >&2; exit 65")
        self.assertEqual(self.events()[identity]["state"], "parked")
        return identity

    def lines(self, text):
        return [json.loads(line) for line in text.splitlines()]


class Sequences(TransferTest):
    def draw(self, url, *words):
        return self.fine("seq", "next", "--store", url, "--name", "ids", *words).split()

    def test_counters_move(self):
        self.draw(self.url, "--create-schema", "--start", "100", "--increment", "10", "--count", "3")
        text = self.fine("seq", "export", "--store", self.url)
        (counter,) = self.lines(text)
        self.assertEqual((counter["kind"], counter["name"], counter["last"]), ("counter", "ids", 20))
        self.assertEqual(self.fine("seq", "import", "--store", self.other, "--create-schema", stdin=text), "imported 1 counter\n")
        self.assertEqual(self.fine("seq", "define", "--store", self.other, "--name", "ids"), counter["definition"] + "\n")
        self.assertEqual(self.draw(self.other), ["300"], "the next id after the block, with the same increment")
        self.assertEqual(self.fine_json("seq", "import", "--store", self.other, "--json", stdin=text), {"counters": 1})
        self.assertEqual(self.draw(self.other), ["500"], "a counter never goes back")

    def test_ahead(self):
        self.draw(self.url, "--create-schema")
        text = self.fine("seq", "export", "--store", self.url)
        self.fine("seq", "import", "--store", self.other, "--create-schema", "--ahead", "1000", stdin=text)
        self.assertEqual(self.draw(self.other), ["1021"])

    def test_refusals(self):
        self.draw(self.url, "--create-schema")
        for bad in ("x", "{}", '{"name":"a","last":-1}', '{"name":"a","last":"1"}'):
            self.assertIn("line 1", self.refused("seq", "import", "--store", self.url, stdin=bad))
        self.assertEqual(run("seq", "import", "--store", self.url).returncode, 1)


class Outbox(TransferTest):
    def test_events_move(self):
        parked = self.park("--type", "p", "--key", "k")
        ids = [self.publish("--type", "t", "--key", "k", "--header", f"n={i}", payload=f'{{"n":{i}}}') for i in range(5)]
        waiting = self.publish("--type", "later", "--delay", "1h")
        self.outbox("schedule", "hold-7", "--lanes", "2", "--after", "1h", "--type", "hold.expired", "--payload", "{}")
        # Half a year from now: it must not become due meanwhile.
        month = (datetime.now(timezone.utc).month + 5) % 12 + 1
        self.fine("outbox", "recur", "add", "nightly", f"0 3 15 {month} *", "--outbox", self.url, "--lanes", "2", "--zone", "Europe/Paris", "--type", "report", "--payload", "{}")
        text = self.outbox("export", "--lanes", "2")
        self.assertEqual([line["kind"] for line in self.lines(text)], ["event"] * 7 + ["ticket", "recurring"])
        self.assertEqual(self.lines(text)[0]["id"], parked, "parked events come first")

        result = self.fine_json("outbox", "import", "--outbox", self.other, "--create-schema", "--lanes", "2", "--json", stdin=text)
        self.assertEqual(result, {"published": 6, "duplicates": 0, "parked": 1, "skipped": 0, "refused": 0, "tickets": 1, "recurring": 1})
        events = self.events(self.other)
        self.assertEqual(events[parked]["state"], "parked")
        self.assertEqual(events[parked]["last_error"], self.events()[parked]["last_error"])
        self.assertEqual(events[waiting]["state"], "waiting")
        self.assertEqual(events[ids[3]]["headers"], {"n": "3"})
        delivered = self.lines(self.outbox("work", "--lanes", "2", "--until-empty", "--file", "-", url=self.other))
        self.assertEqual([event["id"] for event in delivered], ids, "in order")
        self.assertEqual(self.fine_json("outbox", "recur", "list", "--outbox", self.other, "--lanes", "2", "--json")["zone"], "Europe/Paris")
        self.assertEqual(self.outbox("cancel", "hold-7", "--lanes", "2", url=self.other), "cancelled\n")

    def test_it_can_be_repeated(self):
        self.publish("--type", "t")
        text = self.outbox("export", "--lanes", "2")
        words = ("outbox", "import", "--outbox", self.other, "--create-schema", "--lanes", "2")
        self.assertEqual(self.fine(*words, stdin=text), "published 1\n")
        self.assertEqual(self.fine(*words, stdin=text), "published 0, duplicates 1\n")

    def test_parked_events_need_an_empty_outbox(self):
        self.park("--type", "p")
        text = self.outbox("export", "--lanes", "2")
        self.outbox("publish", "--create-schema", "--lanes", "2", "--type", "t", "--payload", "{}", url=self.other)
        words = ("outbox", "import", "--outbox", self.other, "--lanes", "2")
        self.assertIn("--parked skip", self.refused(*words, stdin=text))
        done = run(*words, "--parked", "skip", stdin=text)
        self.assertEqual((done.returncode, done.stdout), (1, b"published 0, skipped 1\n"))
        self.assertEqual(self.fine(*words, "--parked", "deliver", stdin=text), "published 1\n")

    def test_bytes(self):
        self.outbox("publish", "--create-schema", "--type", "t", "--raw", "--content-type", "a/b", "--payload-file", "-", stdin=b"\xff\x00\xfe")
        text = self.outbox("export")
        self.assertEqual(self.lines(text)[0]["payload_base64"], "/wD+")
        self.outbox("import", "--create-schema", url=self.other, stdin=text)
        self.assertEqual(self.lines(self.outbox("export", url=self.other))[0]["payload_base64"], "/wD+")

    def test_publish_many(self):
        words = ("outbox", "publish", "--outbox", self.url, "--create-schema", "--jsonl", "-")
        lines = "".join(json.dumps({"type": "t", "key": "k", "payload": f'"{i}"'}) + "\n" for i in range(450))
        self.assertEqual(self.fine(*words, stdin=lines), "published 450\n")
        delivered = self.lines(self.outbox("work", "--until-empty", "--file", "-"))
        self.assertEqual([event["payloadText"] for event in delivered], [f'"{i}"' for i in range(450)])
        self.assertIn("line 2", self.refused(*words, stdin='{"type":"t"}\n{"key":"k"}\n'))
        self.assertEqual(len(self.events_of_one_lane()), 1, "the lines before are published")
        self.assertIn("not both", self.refused(*words, "--type", "t"))
        self.assertIn("--jsonl", self.refused("outbox", "publish", "--outbox", self.url, "--payload", "{}"))

    def events_of_one_lane(self):
        return self.outbox("list", "--json").splitlines()


class Backup(TransferTest):
    def fill(self):
        for name, key in (("country", "FR"), ("city", "Paris")):
            self.fine("store", "put", "--store", self.url, "--create-schema", "--name", name, "--key", key, "--payload", "{}", "--expire", "7d")
        self.fine("seq", "next", "--store", self.url, "--create-schema", "--name", "ids")
        self.park("--type", "p")
        self.publish("--type", "t", "--key", "k")

    def test_everything(self):
        self.fill()
        self.assertEqual(self.fine("backup", self.url, self.file), "entries 2, counters 1, events 2, tickets 0, recurring 0\n")
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o600)
        self.assertEqual(os.path.exists(self.file + ".partial"), False)
        result = self.fine_json("restore", self.other, self.file, "--create-schema", "--ahead", "5", "--json")
        self.assertEqual(result["store"], {"read": 2, "written": 2, "expired": 0, "older": 0})
        self.assertEqual((result["outbox"]["published"], result["outbox"]["parked"], result["counters"]), (1, 1, 1))
        self.assertEqual(self.fine("store", "export", "--store", self.other, "--all"), self.fine("store", "export", "--store", self.url, "--all"))
        self.assertEqual(self.events(self.other).keys(), self.events().keys(), "with the lanes of the backup")
        self.assertEqual(self.fine("seq", "next", "--store", self.other, "--name", "ids"), "26\n")
        self.fine("doctor", self.other)
        # Again: nothing changes.
        text = self.fine("restore", self.other, self.file)
        self.assertEqual(text, "store: written 2, skipped 0 (expired 0, older 0)\noutbox: published 0, duplicates 2\nsequences: counters 1\n")

    def test_it_replaces_a_backup_and_nothing_else(self):
        self.draw_id()
        database = os.path.join(self.directory, "app.db")
        before = open(database, "rb").read()
        for name in (database, os.path.join(self.directory, "precious")):
            if name != database:
                with open(name, "w") as other:
                    other.write("hello")
            done = run("backup", self.url, name)
            self.assertEqual(done.returncode, 2)
            self.assertIn("exists and is not a backup; choose another name", done.stderr.decode())
        self.assertEqual(open(database, "rb").read(), before)
        for _ in range(2):
            self.fine("backup", self.url, self.file)

    def draw_id(self):
        self.fine("seq", "next", "--store", self.url, "--create-schema", "--name", "ids")

    def test_only_what_exists(self):
        self.fine("seq", "next", "--store", self.url, "--create-schema", "--name", "ids")
        self.assertEqual(self.fine_json("backup", self.url, self.file, "--json"), {"entries": 0, "counters": 1, "events": 0, "tickets": 0, "recurring": 0})
        self.fine("restore", self.other, self.file, "--create-schema")
        connection = sqlite3.connect(self.other.removeprefix("sqlite://"))
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        connection.close()
        self.assertEqual(tables, {"SEQUENCES", "HOLDFAST_SCHEMA"})

    def test_what_is_not_restored_is_said(self):
        self.fill()
        self.fine("backup", self.url, self.file)
        with open(self.file, encoding="utf-8") as file:
            text = file.read()
        with open(self.file, "w", encoding="utf-8") as file:
            file.write("".join(line.replace('"expire_on":"2', '"expire_on":"1') if '"as_of"' in line else line for line in text.splitlines(True))
                       .replace('"as_of":"2', '"as_of":"1'))
        done = run("restore", self.other, self.file, "--create-schema", "--json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(json.loads(done.stdout)["store"]["expired"], 2)

    def test_an_incomplete_file(self):
        self.fill()
        self.fine("backup", self.url, self.file)
        with open(self.file, encoding="utf-8") as file:
            lines = file.readlines()
        for broken, word in ((lines[:-1], "not a complete backup"), (lines[:1] + lines[2:], "lacks lines"), (lines + lines[-1:], "goes on"), ([], "not a complete"),
                             (["{}\n"], "not a backup"), ([lines[0].replace('"format":1', '"format":2'), *lines[1:]], "later version")):
            with open(self.file, "w", encoding="utf-8") as file:
                file.writelines(broken)
            with self.subTest(word):
                self.assertIn(word, self.refused("restore", self.other, self.file, "--create-schema"))
                self.assertFalse(os.path.exists(self.other.removeprefix("sqlite://")), "nothing was written")

    def test_refusals(self):
        self.assertIn("mistyped", self.refused("backup", "sqlite:mistyped.db", self.file))
        sqlite3.connect(os.path.join(self.directory, "app.db")).executescript("CREATE TABLE other (a)")
        self.assertIn("--prefix", self.refused("backup", self.url, self.file))
        self.assertFalse(os.path.exists(self.file))
        self.fill()
        self.refused("backup", self.url, "/no/such/directory/file", code=3)
        self.refused("backup", "memory:", self.file)


class OnRedis(TransferTest):
    def test_from_redis_to_sql_and_back(self):
        socket = os.path.join(self.directory, "redis.sock")
        server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--dir", self.directory, "--save", "", "--appendonly", "yes",
                                   "--appendfsync", "always"], stdout=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        url = "redis+unix://" + socket
        deadline = time.monotonic() + 30
        while run("redis", "doctor", url).returncode == 3:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        identity = self.outbox("publish", "--lanes", "2", "--type", "t", "--payload", "{}", url=url).strip()
        for fence in ("none", "clock"):
            self.fine("seq", "next", "--store", url, "--fence", fence, "--name", fence)
        self.fine("backup", url, self.file)
        self.fine("restore", self.other, self.file, "--create-schema")
        self.assertEqual(list(self.events(self.other)), [identity])
        self.assertEqual(self.fine("seq", "next", "--store", self.other, "--name", "none"), "21\n")
        self.assertEqual(self.fine("restore", url, self.file).splitlines()[1], "outbox: published 0, duplicates 1")
        self.assertEqual(self.fine("seq", "next", "--store", url, "--fence", "none", "--name", "none"), "21\n")
        self.fine("seq", "next", "--store", url, "--fence", "clock", "--name", "clock")


if __name__ == "__main__":
    unittest.main()
