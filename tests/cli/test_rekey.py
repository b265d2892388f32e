"""holdfast store rekey: what it changes, what it says, and that it goes on where it was killed."""

import json
import os
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

from holdfast_process import HOLDFAST, CommandTest, run

OLD = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
NEW = "k2:ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8="


def waits_for(pid, number):
    """Whether a process blocks a signal, which it then polls for."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        blocked = next(line.split()[1] for line in status if line.startswith("SigBlk:"))
    return int(blocked, 16) >> (number - 1) & 1 == 1


class Rekey(CommandTest):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.file = os.path.join(directory.name, "answers.db")
        self.keys = os.path.join(directory.name, "keys")
        self.store = ("--store", "sqlite://" + self.file)

    def ring(self, *lines):
        with open(self.keys, "w", encoding="ascii") as to:
            os.fchmod(to.fileno(), 0o600)
            to.write("\n".join(lines) + "\n")

    def rekey(self, *words, **more):
        return self.fine_json("store", "rekey", *self.store, "--key-file", self.keys, "--json", *words, **more)

    def fill(self, count, name="country", prefix=None):
        lines = [json.dumps({"name": name, "key": f"k{i:06}", "as_of": "2024-01-01T00:00:00.000000Z", "expire_on": "2999-01-01T00:00:00.000000Z",
                             "payload": json.dumps({"number": i}), "payload_class": "app.Country"}) for i in range(count)]
        more = ("--prefix", prefix) if prefix else ()
        done = run("store", "import", *self.store, "--create-schema", *more, stdin="\n".join(lines))
        self.assertEqual(done.returncode, 0, done.stderr)

    def payloads(self, table="FAILOVER_STORE"):
        held = sqlite3.connect(self.file)
        try:
            return [row[0] for row in held.execute(f"SELECT PAYLOAD FROM {table} ORDER BY FAILOVER_NAME, FAILOVER_KEY")]
        finally:
            held.close()

    def sealed_with(self, key, table="FAILOVER_STORE"):
        return sum(each.startswith(f"ENC({key}:") for each in self.payloads(table))

    def test_interrupted_run_says_how_far_it_came(self):
        self.fill(250)
        self.ring(OLD)
        held = sqlite3.connect(self.file, isolation_level=None)
        held.execute("BEGIN IMMEDIATE")  # the first page waits
        process = subprocess.Popen([HOLDFAST, "store", "rekey", *self.store, "--key-file", self.keys, "--allow-plaintext"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while not waits_for(process.pid, signal.SIGINT) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        held.execute("ROLLBACK")
        held.close()
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (3, b""))
        self.assertRegex(err.decode(), r"^holdfast: stopped after it rekeyed (0|100) of 250; run it again to go on\n$")
        self.assertLess(self.sealed_with("k1"), 250)
        self.assertEqual(self.rekey("--allow-plaintext")["unreadable"], 0)
        self.assertEqual(self.sealed_with("k1"), 250)

    def test_rotation(self):
        self.fill(250)
        self.fill(3, name="other")
        self.ring(OLD)
        done = self.rekey("--allow-plaintext")
        self.assertEqual(done, {"changed": 253, "current": 0, "tombstones": 0, "moved": 0, "unreadable": 0})
        self.assertEqual(self.sealed_with("k1"), 253)

        self.ring(NEW, OLD)
        check = run("store", "rekey", *self.store, "--key-file", self.keys, "--check", "--json")
        self.assertEqual(check.returncode, 1)
        self.assertEqual(json.loads(check.stdout)["to_do"], 253)
        self.assertEqual(self.rekey("--name", "other")["changed"], 3)
        self.assertEqual(self.rekey(), {"changed": 250, "current": 3, "tombstones": 0, "moved": 0, "unreadable": 0})
        self.ring(NEW)
        self.assertEqual(self.rekey("--check")["to_do"], 0)
        self.assertEqual(self.sealed_with("k2"), 253)

    def kill_half_way(self):
        """Fills the store and kills who seals it after the first entries. False: it was quicker."""
        self.fill(20000)
        self.ring(OLD)
        process = subprocess.Popen([HOLDFAST, "store", "rekey", *self.store, "--key-file", self.keys, "--allow-plaintext"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        held = sqlite3.connect(self.file, timeout=30)
        try:
            while process.poll() is None:
                sealed = held.execute("SELECT COUNT(*) FROM FAILOVER_STORE WHERE PAYLOAD LIKE 'ENC(%'").fetchone()[0]
                if sealed > 0:
                    break
                time.sleep(0.001)
        finally:
            held.close()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return process.returncode == -signal.SIGKILL and self.sealed_with("k1") < 20000

    def test_killed_half_way_it_goes_on(self):
        for _ in range(5):  # on a busy machine it may be done before it can be killed
            if killed := self.kill_half_way():
                break
            self.setUp()  # a fresh file
        self.assertTrue(killed, "it was done before it could be killed")
        before = self.sealed_with("k1")
        self.assertGreater(before, 0)
        done = self.rekey("--allow-plaintext")
        self.assertEqual(done["current"], before, "what was sealed is skipped")
        self.assertEqual(done["changed"], 20000 - before)
        self.assertEqual(self.sealed_with("k1"), 20000)

    def test_tenants(self):
        self.fill(2, prefix="ACME_")
        self.fill(3, prefix="globex_")
        self.ring(OLD)
        done = self.rekey("--allow-plaintext", "--tenant", "acme=ACME_", "--tenant", "globex")
        self.assertEqual(done["changed"], 5)
        self.assertEqual(self.sealed_with("k1", "ACME_FAILOVER_STORE"), 2)
        self.ring(NEW, OLD)
        wrong = run("store", "rekey", *self.store, "--key-file", self.keys, "--prefix", "ACME_", "--json")
        self.assertEqual(wrong.returncode, 1, "sealed in another realm")
        self.assertEqual(json.loads(wrong.stdout)["unreadable"], 2)
        self.assertEqual(self.rekey("--tenant", "acme=ACME_")["changed"], 2)

    def test_what_cannot_be_opened(self):
        self.fill(2)
        self.ring(OLD)
        done = run("store", "rekey", *self.store, "--key-file", self.keys)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"unreadable  2", done.stdout)
        self.assertIn(b"read_plaintext", done.stderr)
        self.assertEqual(done.stderr.count(b"\n"), 1)

    def test_keys_from_the_environment(self):
        self.fill(1)
        done = self.fine_json("store", "rekey", *self.store, "--key-variable", "APP_KEYS", "--allow-plaintext", "--json", env={"APP_KEYS": NEW + "," + OLD})
        self.assertEqual(done["changed"], 1)
        self.assertEqual(self.sealed_with("k2"), 1)

    def test_mistakes(self):
        self.fill(1)
        self.ring(OLD)
        self.assertIn("--key-file", self.refused("store", "rekey", *self.store))
        secret = OLD.partition(":")[2]
        for lines in ([secret], ["k1:" + secret[1:]], ["k1:" + secret, "k1:" + NEW.partition(":")[2]], []):
            self.ring(*lines)
            said = self.refused("store", "rekey", *self.store, "--key-file", self.keys)
            self.assertNotIn(secret[1:20], said)
        self.refused("store", "rekey", *self.store, "--key-file", self.keys + ".none", code=3)
        self.assertIn("APP_NONE", self.refused("store", "rekey", *self.store, "--key-variable", "APP_NONE"))


    def test_a_key_file_that_others_may_read_is_refused(self):
        self.fill(1)
        self.ring(OLD)
        for mode, public in ((0o644, True), (0o604, True), (0o602, True), (0o640, False), (0o400, False), (0o600, False)):
            with self.subTest(mode=oct(mode)):
                os.chmod(self.keys, mode)
                if public:
                    told = self.refused("store", "rekey", *self.store, "--key-file", self.keys, "--allow-plaintext", code=3)
                    self.assertIn(f"every user of this machine may read or change the key file (mode 0{mode:o}); run: chmod 600 {self.keys}", told)
                else:
                    self.rekey("--allow-plaintext")


if __name__ == "__main__":
    unittest.main()
