"""holdfast outbox on SQLite, from outside. On Redis: tests/integration/outbox_worker_test.cpp."""

import contextlib
import http.server
import json
import os
import pty
import signal
import sqlite3
import stat
import subprocess
import tempfile
import threading
import time
import unittest

from holdfast_process import HOLDFAST, CommandTest, run


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


class Outbox(CommandTest):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.at = ["--outbox", f"sqlite:{self.directory.name}/app.db", "--create-schema"]

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def publish(self, *words, payload='{"n":1}', type="t"):
        return self.fine("outbox", "publish", *self.at, "--type", type, "--payload", payload, *words).strip()

    def work(self, *words, code=0):
        done = run("outbox", "work", *self.at, "--until-empty", "--json", *words)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def show(self, id):
        return self.fine_json("outbox", "show", *self.at, id)

    def stats(self):
        return self.fine_json("outbox", "stats", *self.at, "--json")

    def test_short_times_have_units_for_people(self):
        self.publish("--delay", "9s")
        self.assertRegex(self.fine("outbox", "list", *self.at), r"waiting +[0-9.]+ m?s +in [0-8]\.[0-9] s ")

    def test_published_and_delivered(self):
        ids = [self.publish("--key", "k", payload=json.dumps({"n": n})) for n in range(3)]
        did = self.work("--file", self.path("events.jsonl"))
        self.assertEqual(did["done"], 3)
        with open(self.path("events.jsonl")) as file:
            events = [json.loads(line) for line in file]
        self.assertEqual([each["id"] for each in events], ids)
        self.assertEqual([each["payload"]["n"] for each in events], [0, 1, 2])
        self.assertEqual(events[0]["key"], "k")
        self.assertEqual(self.stats()["events"], 0)

    def test_an_id_is_published_once(self):
        id = self.publish()
        again = self.fine_json("outbox", "publish", *self.at, "--type", "t", "--payload", "{}", "--id", id, "--json")
        self.assertEqual(again, {"id": id, "status": "duplicate"})
        self.assertEqual(self.stats()["events"], 1)

    def test_a_program_decides(self):
        done = self.publish(type="done", payload='{"text":"hello"}')
        again = self.publish(type="again")
        never = self.publish(type="never")
        later = self.publish(type="later")
        script = self.path("deliver")
        with open(script, "w") as file:
            file.write(
                "cat >> " + self.path("seen") + "\n"
                'case "$HOLDFAST_EVENT_TYPE" in\n'
                '  again) echo "no connection" >&2; exit 1;;\n'
                "  never) exit 65;;\n"
                "  later) exit 75;;\n"
                "esac\n"
            )
        did = self.work("--exec", f"sh {script}", code=1)
        self.assertEqual((did["done"], did["parked"], did["throttled"]), (1, 1, 1))
        # The pause is random: on a slow machine it is over before the others are done.
        self.assertGreaterEqual(did["retried"], 1)
        with open(self.path("seen")) as file:
            seen = {each["id"]: each for each in map(json.loads, file)}
        self.assertEqual(set(seen), {done, again, never, later})
        self.assertEqual(seen[done]["payload"], {"text": "hello"})
        self.assertEqual(self.show(again)["last_error"], "exit code 1: no connection")
        self.assertGreaterEqual(self.show(again)["attempts"], 1)
        self.assertEqual(self.show(later)["attempts"], 0)
        self.assertEqual(self.show(never)["state"], "parked")
        self.assertEqual(run("outbox", "show", *self.at, done).returncode, 1)

    def test_a_program_inherits_no_secrets(self):
        id = self.publish(type="real", payload="{}")
        inherited = {"HOLDFAST_PASSWORD": "planted-1", "HOLDFAST_REDIS_PASSWORD": "planted-2", "HOLDFAST_KEYS": "main:planted-3",
                     "HOLDFAST_EVENT_ID": "forged", "HOLDFAST_EVENT_TYPE": "forged", "HOLDFAST_EVENT_KEY": "forged", "OTHER": "kept"}
        done = run("outbox", "work", *self.at, "--until-empty", "--exec", f"tr '\\0' '\\n' < /proc/self/environ > {self.path('env')}",
                   env=inherited)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("env")) as file:
            lines = file.read().splitlines()
        self.assertFalse([line for line in lines if "planted" in line or "forged" in line])
        ours = [line for line in lines if line.startswith("HOLDFAST_")]
        self.assertEqual(sorted(ours), ["HOLDFAST_EVENT_ATTEMPTS=0", *[line for line in ours if "_FENCE=" in line],
                                        f"HOLDFAST_EVENT_ID={id}", "HOLDFAST_EVENT_KEY=", "HOLDFAST_EVENT_TYPE=real"])
        self.assertIn("OTHER=kept", lines)

    def test_an_entry_that_publish_would_refuse_is_parked(self):
        """Somebody who can write to the store writes what no outbox would."""
        seen = self.path("seen")
        for reason, fields in [
            ("type of an event has a control character", {"type": "paid\u0000refunded"}),
            ("type of an event has 200000 bytes", {"type": "x" * 200_000}),
            ("content type of an event has a control character", {"contentType": "text/plain\r\nX-Admin: 1"}),
            ("name of a header has a control character", {"headers": {"a\r\nb": "c"}}),
            ("header 'a' has a control character", {"headers": {"a": "b\r\nc"}}),
            ("larger than the limit of 262144", {"payload": {"a": "x" * 3_000_000}}),
            ("another event", {"key": "other"}),
        ]:
            with self.subTest(reason=reason):
                bad = self.publish("--key", "k")
                good = self.publish("--key", "k")
                with contextlib.closing(sqlite3.connect(self.path("app.db"))) as db, db:
                    (entry,) = db.execute("SELECT ENTRY FROM holdfast_OUTBOX_ENTRY WHERE ID = ?", (bad,)).fetchone()
                    entry = json.dumps({**json.loads(entry), **fields})
                    db.execute("UPDATE holdfast_OUTBOX_ENTRY SET ENTRY = ? WHERE ID = ?", (entry, bad))
                did = self.work("--exec", f'echo "$HOLDFAST_EVENT_ID" >> {seen}', code=1)
                self.assertEqual(did["done"], 1)
                with open(seen) as file:
                    self.assertEqual(file.read().splitlines()[-1], good)
                parked = self.show(bad)
                self.assertEqual(parked["state"], "parked")
                self.assertIn(reason, parked["last_error"])
                if "limit" in reason:
                    self.fine("outbox", "replay", *self.at, bad)
                    self.assertEqual(self.work("--exec", "cat > /dev/null", "--inline-limit", "4000000")["done"], 1)

    def wait_for_file(self, name, lines=1):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError), open(self.path(name)) as file:
                content = file.read()
                if content.count("\n") >= lines:
                    return content.split()
            time.sleep(0.01)
        self.fail(f"{name} was not written")

    def test_status_lines(self):
        self.publish()
        line = r"holdfast: delivered 0 \([0-9]+/s\), retried 0, parked 0, in flight [01]\n"
        words = ("outbox", "work", *self.at, "--until-empty", "--exec", "sleep 1.3", "--status", "1s")
        self.assertRegex(run(*words).stderr.decode(), line)
        self.publish()
        done = run(*words, "--log", "json")
        records = [json.loads(line) for line in done.stderr.decode().splitlines()]
        self.assertEqual({record["message"] for record in records}, {"status"})
        self.assertEqual(set(records[0]["fields"]), {"delivered", "per_second", "retried", "parked", "in_flight"})
        self.publish()
        self.assertEqual(run(*words[:-2]).stderr, b"", "what is not a terminal is a log: it gets no lines without end")

    def test_programs_do_not_outlive_a_killed_worker(self):
        """Neither the program, nor what it has started."""
        self.publish()
        script = f"sleep 1000 & echo $! > {self.path('pids')}; echo $$ >> {self.path('pids')}; wait"
        worker = subprocess.Popen([HOLDFAST, "outbox", "work", *self.at, "--exec", script], stderr=subprocess.DEVNULL)
        pids = [int(pid) for pid in self.wait_for_file("pids", 2)]
        worker.kill()
        worker.wait()
        deadline = time.monotonic() + 60
        try:
            for pid in pids:
                while is_alive(pid):
                    self.assertLess(time.monotonic(), deadline, f"{pid} of {pids} outlived its worker")
                    time.sleep(0.01)
        finally:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def lanes_by_owner(self):
        with contextlib.closing(sqlite3.connect(self.path("app.db"), timeout=30)) as db:
            rows = db.execute("SELECT OWNER, COUNT(*) FROM holdfast_OUTBOX_LANE WHERE LANE >= 0 AND OWNER <> '' AND UNTIL > ? GROUP BY OWNER",
                              (int(time.time() * 1000),))
            return sorted(count for _, count in rows)

    def wait_for_lanes(self, *counts):
        deadline = time.monotonic() + 60
        while self.lanes_by_owner() != sorted(counts):
            self.assertLess(time.monotonic(), deadline, f"{self.lanes_by_owner()} instead of {counts}")
            time.sleep(0.05)

    def test_workers_share_the_lanes(self):
        self.at += ["--lanes", "8"]
        self.publish()
        workers = []

        def join():
            workers.append(subprocess.Popen([HOLDFAST, "outbox", "work", *self.at, "--file", "/dev/null", "--lease", "3s"],
                                            stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL))

        try:
            for _ in range(3):
                join()
            self.wait_for_lanes(3, 3, 2)
            join()
            self.wait_for_lanes(2, 2, 2, 2)
            workers[1].kill()
            self.wait_for_lanes(3, 3, 2)
            workers[2].terminate()
            self.wait_for_lanes(4, 4)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()

    def test_a_program_that_takes_too_long_fails(self):
        id = self.publish()
        did = self.work("--time-limit", "4s", "--max-attempts", "1", "--exec", "sleep 1000", code=1)
        self.assertEqual((did["parked"], did["done"]), (1, 0))
        self.assertEqual(self.show(id)["last_error"], "ambiguous: ended by signal 15")

    def test_verbose_says_when_deliveries_succeed_again(self):
        self.publish(type="mail")
        script = f"test -e {self.path('again')} && exit 0; touch {self.path('again')}; exit 1"
        worker = subprocess.Popen([HOLDFAST, "outbox", "work", *self.at, "--verbose", "--exec", script], stderr=subprocess.PIPE)
        lines = []
        while not lines or b"again (" not in lines[-1]:
            lines.append(worker.stderr.readline())
            self.assertTrue(lines[-1], lines)
        worker.terminate()
        worker.communicate()
        self.assertTrue(any(line.startswith(b"holdfast: warning: a delivery failed") for line in lines), lines)
        self.assertEqual(lines[-1], b"holdfast: deliveries of a type succeed again (type mail, failures 1)\n")

    def test_a_failure_is_reported(self):
        self.publish(type="mail")
        done = run("outbox", "work", *self.at, "--until-empty", "--max-attempts", "3", "--exec", "echo no route >&2; exit 1")
        self.assertEqual(done.returncode, 1)
        for part in [b"a delivery failed", b"no route", b"type mail"]:
            self.assertIn(part, done.stderr)

    # A C1 control (CSI), an override of the direction of text, and a line separator.
    TRICKS = "\u009b31m \u202etxt.exe\u202c \u2066x\u2069 \u200f \u2028"

    def assert_harmless(self, text):
        for trick in set(self.TRICKS) - set("31mtxt.exe "):
            self.assertNotIn(trick, text)

    def test_files_are_private(self):
        before = self.path("before.jsonl")
        with open(before, "w") as file:
            os.fchmod(file.fileno(), 0o664)
        for umask in (0o022, 0o000, 0o277):
            with self.subTest(umask=oct(umask)):
                name = f"u{umask:o}"
                words = ["--outbox", f"sqlite:{self.path(name + '.db')}", "--create-schema"]
                # With 0o277 the owner may not write either: only looked at below.
                made = subprocess.run([HOLDFAST, "outbox", "publish", *words, "--type", "t", "--payload", "{}"], capture_output=True,
                                      preexec_fn=lambda: os.umask(umask), timeout=60)
                self.assertEqual(stat.S_IMODE(os.stat(self.path(name + ".db")).st_mode), 0o600 & ~umask)
                if umask == 0o277:
                    continue
                self.assertEqual(made.returncode, 0, made.stderr)
                for out, mode in ((self.path(name + ".jsonl"), 0o600), (before, 0o664)):
                    subprocess.run([HOLDFAST, "outbox", "publish", *words, "--type", "t", "--payload", "{}"], check=True, capture_output=True)
                    worker = subprocess.run([HOLDFAST, "outbox", "work", *words, "--until-empty", "--file", out], capture_output=True,
                                            preexec_fn=lambda: os.umask(umask), timeout=60)
                    self.assertEqual(worker.returncode, 0, worker.stderr)
                    listed = subprocess.run(["ls", "-l", out], check=True, capture_output=True).stdout.decode()
                    self.assertTrue(listed.startswith(stat.filemode(stat.S_IFREG | mode)), listed)

    def test_logs_of_a_database_are_private(self):
        # Held open, so that its log and its shared memory are there to be looked at.
        self.publish()
        worker = subprocess.Popen([HOLDFAST, "outbox", "work", *self.at, "--exec", "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        end = time.monotonic() + 30
        while time.monotonic() < end and not os.path.exists(self.path("app.db-wal")):
            time.sleep(0.02)
        for name in ("app.db", "app.db-wal", "app.db-shm"):
            self.assertEqual(stat.S_IMODE(os.stat(self.path(name)).st_mode), 0o600, name)
        # One that was there keeps its mode.
        os.close(os.open(self.path("old.db"), os.O_CREAT | os.O_WRONLY, 0o600))
        os.chmod(self.path("old.db"), 0o664)
        self.fine("outbox", "publish", "--outbox", f"sqlite:{self.path('old.db')}", "--create-schema", "--type", "t", "--payload", "{}")
        self.assertEqual(stat.S_IMODE(os.stat(self.path("old.db")).st_mode), 0o664)

    def test_stored_text_cannot_drive_a_terminal(self):
        for words in (["--key", self.TRICKS], ["--header", f"h={self.TRICKS}"]):
            self.assertIn("control character", self.refused("outbox", "publish", *self.at, "--type", "t", "--payload", "{}", *words))
        id = self.publish(payload=json.dumps({"a": self.TRICKS}, ensure_ascii=False))
        with contextlib.closing(sqlite3.connect(self.path("app.db"))) as db, db:
            db.execute("UPDATE holdfast_OUTBOX SET LAST_ERROR = ? WHERE ID = ?", (self.TRICKS, id))
        shown = self.fine("outbox", "show", *self.at, id)
        self.assert_harmless(shown)
        record = json.loads(shown)
        self.assertEqual(record["last_error"], self.TRICKS, "escaped, not lost")
        self.assertEqual(json.loads(record["payload"]), {"a": self.TRICKS})
        for words in (["list"], ["list", "--json"], ["explain", id], ["explain", id, "--json"]):
            self.assert_harmless(self.fine("outbox", words[0], *self.at, *words[1:]))
        # To a file or a program go the bytes of the payload; on a terminal, they are escaped.
        ours, theirs = pty.openpty()
        done = subprocess.run([HOLDFAST, "outbox", "work", *self.at, "--until-empty", "--file", "-"], stdout=theirs, stderr=subprocess.PIPE,
                              timeout=60)
        os.close(theirs)
        self.assertEqual(done.returncode, 0, done.stderr)
        written = os.read(ours, 65536).decode()
        os.close(ours)
        self.assert_harmless(written)
        self.assertEqual(json.loads(written)["payload"], {"a": self.TRICKS})

    def test_a_program_that_closes_what_it_has(self):
        # More than a pipe holds, so that it is still being written when the program closes its standard error.
        self.publish(payload=json.dumps({"text": "x" * 100_000}))
        did = self.work("--exec", f"exec 2>&-; sleep 0.2; wc -c > {self.path('size')}")
        self.assertEqual(did["done"], 1)
        with open(self.path("size")) as file:
            self.assertGreater(int(file.read()), 100_000)
        self.publish(payload=json.dumps({"text": "x" * 100_000}))
        self.assertEqual(self.work("--exec", "exec <&- 2>&-; sleep 0.2")["done"], 1)

    def test_what_a_program_leaves_behind_is_not_waited_for(self):
        id = self.publish()
        began = time.monotonic()
        self.work("--exec", f"sleep 45 > {self.path('x')} & echo $! > {self.path('left')}; echo bad address >&2; exit 65", code=1)
        self.assertLess(time.monotonic() - began, 40)
        with open(self.path("left")) as file:
            os.kill(int(file.read()), signal.SIGKILL)
        self.assertEqual(self.show(id)["last_error"], "exit code 65: bad address")

    def test_a_reader_that_goes_away(self):
        for more, code in (([], 0), (["--until-empty"], 1)):
            with self.subTest(more=more):
                ids = [self.publish() for _ in range(3)]
                read, write = os.pipe()
                os.close(read)
                words = [HOLDFAST, "outbox", "work", *self.at, "--file", "-", "--max-attempts", "1", *more]
                done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, timeout=60)
                os.close(write)
                self.assertEqual((done.returncode, done.stderr), (code, b""))
                for id in ids:
                    self.assertEqual((self.show(id)["attempts"], self.show(id)["state"] == "parked"), (0, False))

    def test_replays_in_order(self):
        ids = [f"018f2b6e-5c1e-7000-8000-00000000000{n}" for n in (3, 1, 2)]
        for id in ids:
            self.publish("--key", "k", "--id", id)
        self.work("--exec", "exit 65", code=1)
        self.assertEqual(self.fine("outbox", "replay", *self.at, "--all"), "replayed 3\n")
        self.work("--file", self.path("events.jsonl"))
        with open(self.path("events.jsonl")) as file:
            self.assertEqual([json.loads(line)["id"] for line in file], ids)

    def test_parked_replayed_discarded(self):
        ids = [self.publish(type=f"mail{n}") for n in range(3)]
        self.work("--exec", "echo bad address >&2; exit 65", code=1)
        groups = self.fine("outbox", "parked", *self.at, "--groups")
        self.assertEqual(groups.count("bad address"), 3)
        self.assertIn(ids[0], self.fine("outbox", "parked", *self.at))
        self.assertEqual(self.fine("outbox", "replay", *self.at, ids[0]), "replayed 1\n")
        self.assertEqual(self.show(ids[0])["replays"], 1)
        self.assertEqual(self.fine("outbox", "discard", *self.at, "--type", "mail1"), "discarded 1\n")
        self.assertEqual(self.fine("outbox", "replay", *self.at, "--error", "bad address"), "replayed 1\n")
        self.assertEqual(self.work("--exec", "true")["done"], 2)
        self.assertEqual(run("outbox", "replay", *self.at, ids[0]).returncode, 1)
        self.refused("outbox", "replay", *self.at)
        for name in ("replay", "discard"):
            for words in (("--type", "mail0"), ("--error", "x"), ("--type", "a", "--error", "x")):
                self.assertIn("not both", self.refused("outbox", name, *self.at, "--all", *words))
            done = run("outbox", name, *self.at, "--type", "nosuch")
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"no parked event has the type 'nosuch'", done.stderr)
            self.assertEqual(run("outbox", name, *self.at, "--error", "nosuch").returncode, 1)
            self.assertEqual(run("outbox", name, *self.at, "--all").returncode, 0)
        self.refused("outbox", "discard", *self.at, "--all", ids[0])

    def test_stats_with_a_limit_of_parked_events(self):
        self.publish()
        self.fine("outbox", "stats", *self.at, "--max-parked", "0")
        self.work("--exec", "exit 65", code=1)
        for limit, code in (("0", 1), ("1", 0)):
            self.assertEqual(run("outbox", "stats", *self.at, "--max-parked", limit).returncode, code)

    def test_explain(self):
        first = self.publish("--key", "k")
        second = self.publish("--key", "k")
        later = self.publish("--delay", "1h")
        self.assertIn(first, self.fine("outbox", "explain", *self.at, second))
        self.assertRegex(self.fine("outbox", "explain", *self.at, later), r"due at 20\d\d-\d\d-\d\dT.*Z\n")
        self.assertEqual(self.fine_json("outbox", "show", *self.at, later, "--json")["until"],
                         self.fine_json("outbox", "explain", *self.at, later, "--json")["until"])
        self.assertEqual(self.fine_json("outbox", "explain", *self.at, later, "--json")["state"], "waiting")
        self.fine("outbox", "pause", *self.at)
        self.assertIn("paused", self.fine("outbox", "explain", *self.at, first))
        self.assertTrue(self.stats()["paused"])
        done = run("outbox", "work", *self.at, "--until-empty", "--file", "-", "--json")
        self.assertEqual(done.stdout, b"", "that is for events")
        self.assertIn(b"the outbox is paused", done.stderr)
        self.assertEqual(json.loads(done.stderr.splitlines()[-1])["done"], 0)
        self.fine("outbox", "resume", *self.at)
        gone = run("outbox", "explain", *self.at, "018f2b6e-5c1e-7000-8000-000000000001")
        self.assertEqual(gone.returncode, 1)

    def test_list_and_fsck(self):
        id = self.publish("--header", "tenant=acme")
        self.assertIn(id, self.fine("outbox", "list", *self.at))
        self.assertEqual(self.fine("outbox", "list", *self.at, "--state", "parked"), "")
        listed = self.fine_json("outbox", "list", *self.at, "--json", "--type", "t")
        self.assertEqual((listed["id"], listed["state"], listed["headers"]), (id, "due", {"tenant": "acme"}))
        self.assertTrue(self.fine("outbox", "fsck", *self.at).endswith("well\n"))

    def test_tickets(self):
        words = ["--type", "hold.expired", "--payload", '{"seat":7}']
        self.fine("outbox", "schedule", *self.at, "hold-7", "--after", "1h", *words)
        self.assertIn("hold-7", self.fine("outbox", "list", *self.at, "--tickets"))
        self.assertNotRegex(self.fine("outbox", "list", *self.at, "--tickets"), r"[0-9]{5}d")
        self.assertEqual(self.fine("outbox", "cancel", *self.at, "hold-7"), "cancelled\n")
        status = json.loads(run("outbox", "cancel", *self.at, "hold-7", "--json").stdout)
        self.assertEqual(status, {"ticket": "hold-7", "status": "unknown"})
        self.assertEqual(run("outbox", "cancel", *self.at, "hold-7").stdout, b"unknown\n")
        self.fine("outbox", "schedule", *self.at, "hold-8", "--after", "0s", *words)
        self.assertEqual(self.work("--file", self.path("out"))["done"], 1)
        with open(self.path("out")) as file:
            self.assertEqual(json.load(file)["type"], "hold.expired")

    def test_posted_over_http(self):
        answers = {"/ok": (204, {}), "/busy": (429, {"Retry-After": "3600"}), "/bad": (422, {}), "/down": (500, {})}
        seen = []

        class Receiver(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                seen.append((self.path, dict(self.headers), body))
                status, headers = answers[self.path]
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *ignored):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        for path, field in [("/ok", "done"), ("/busy", "throttled"), ("/bad", "parked"), ("/down", "retried")]:
            with self.subTest(path=path):
                id = self.publish("--key", "k" + path[1:])
                did = self.work("--http", url + path, code=0 if field in ("done", "throttled") else 1)
                self.assertGreaterEqual(did[field], 1)
                got, headers, body = seen[-1]
                self.assertEqual((got, body), (path, b'{"n":1}'))
                self.assertEqual(headers["ce-id"], id)
                self.assertEqual(headers["Idempotency-Key"], id)
                self.assertEqual(headers["ce-type"], "t")
                self.assertEqual(headers["Content-Type"], "application/json")
        sources = [headers["ce-source"] for _, headers, _ in seen]
        self.publish("--key", 'a "b" 50% \u00fc', type="two words")
        self.work("--http", url + "/ok", "--prefix", "{holdfast}")
        # What failed before may have come again.
        headers = next(headers for _, headers, _ in seen if headers["ce-type"] == "two%20words")
        self.assertEqual(headers["ce-partitionkey"], "a%20%22b%22%2050%25%20%C3%BC")
        self.assertEqual({*sources, headers["ce-source"]}, {"/holdfast/outbox/holdfast"})
        self.publish()
        self.assertGreaterEqual(self.work("--http", "http://127.0.0.1:1/", code=1)["retried"], 1)

    def test_credentials_of_an_event_are_not_posted_unless_asked(self):
        seen = []

        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                seen.append({name.lower(): value for name, value in self.headers.items()})
                self.send_response(204)
                self.end_headers()

            def log_message(self, *ignored):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        for words in ([], ["--pass-credentials"]):
            self.publish("--header", "Authorization=Bearer secret", "--header", "cookie=session=1", "--header", "tenant=acme")
            self.assertEqual(self.work("--http", url, *words)["done"], 1)
            self.assertEqual(seen[-1]["tenant"], "acme")
            self.assertEqual(seen[-1].get("authorization"), "Bearer secret" if words else None)
            self.assertEqual(seen[-1].get("cookie"), "session=1" if words else None)
        self.assertIn("--http", self.refused("outbox", "work", *self.at, "--file", "-", "--pass-credentials"))

    def test_it_stays_until_it_is_told(self):
        out = self.path("out")
        words = [HOLDFAST, "outbox", "work", *self.at, "--file", out]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as worker:
            # At its end, `with` waits for the worker: nothing that fails before may leave it there.
            with contextlib.ExitStack() as on_failure:
                on_failure.callback(worker.kill)
                self.publish()
                on_failure.pop_all()
            end = time.monotonic() + 30
            while time.monotonic() < end and not (os.path.exists(out) and os.path.getsize(out) > 0):
                time.sleep(0.02)
            worker.send_signal(signal.SIGTERM)
            text, complaint = worker.communicate(timeout=30)
        self.assertEqual((worker.returncode, complaint), (0, b""))
        self.assertIn(b"done 1", text)

    def test_until_empty_beside_a_worker_that_stays(self):
        id = self.publish()
        gate = self.path("gate")
        os.mkfifo(gate)
        holder = subprocess.Popen([HOLDFAST, "outbox", "work", *self.at, "--exec", f"echo > {self.path('begun')}; cat {gate}"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        end = time.monotonic() + 30
        while time.monotonic() < end and not os.path.exists(self.path("begun")):
            time.sleep(0.02)
        words = [HOLDFAST, "outbox", "work", *self.at, "--until-empty", "--exec", "true"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as other:
            self.addCleanup(other.kill)
            self.assertIn(b"held by another worker", other.stderr.readline())
            self.assertEqual(self.show(id)["state"], "claimed")
            with open(gate, "w"):
                pass
            self.assertEqual(other.communicate(timeout=50), (b"done 0\n", b""))
        self.assertEqual(other.returncode, 0)
        self.publish("--delay", "1h")
        self.assertEqual(self.work("--exec", "true")["done"], 0)

    def test_mistakes_say_what_to_do(self):
        """One line each."""
        empty = ["--outbox", f"sqlite:{self.path('empty.db')}"]
        open(self.path("empty.db"), "w").close()

        def told(*words, code=2):
            return self.refused("outbox", "stats", *words, code=code)

        self.assertIn("see: holdfast outbox schema --dialect sqlite\n", told(*empty, code=3))
        self.assertIn("holdfast outbox schema --dialect sqlite --prefix '{shop}'", told(*empty, "--prefix", "{shop}", code=3))
        self.assertIn("hash tag", told(*empty, "--prefix", "shop", "--create-schema"))
        self.assertIn("power of two", told(*empty, "--lanes", "3", "--create-schema"))
        self.assertIn("does not exist", told(*empty, "--prefix", "{shop}", code=3), "what was refused made nothing")
        self.assertIn("check its path", told("--outbox", f"sqlite:{self.path('none.db')}"))
        self.assertIn("127.0.0.1:1", told("--outbox", "redis://127.0.0.1:1", code=3))
        for url in ("redis://127.0.0.1:1", "postgresql://127.0.0.1:1/d", "mysql://127.0.0.1:1/d"):
            self.assertIn("127.0.0.1:1", self.refused("outbox", "work", "--outbox", url, "--exec", "true", code=3))
        self.publish()
        self.assertRegex(told(*self.at, "--lanes", "4"), "has 1 lane, not 4, which is fixed when .*; give --lanes 1, ")
        with contextlib.closing(sqlite3.connect(self.path("app.db"))) as db, db:
            db.execute("ALTER TABLE holdfast_OUTBOX DROP COLUMN NUMBER")
        self.assertIn("another version", told(*self.at, code=3))

    def test_schema(self):
        for dialect in ("sqlite", "postgresql", "mysql", "mariadb"):
            self.assertIn("CREATE TABLE IF NOT EXISTS shop_OUTBOX (", self.fine("outbox", "schema", "--dialect", dialect, "--prefix", "{shop}"))
        with contextlib.closing(sqlite3.connect(self.path("app.db"))) as db, db:
            db.executescript(self.fine("outbox", "schema", "--dialect", "sqlite"))
        self.at.remove("--create-schema")
        self.publish()
        self.assertEqual(self.stats()["events"], 1)

    def test_an_empty_outbox_may_be_a_mistyped_one(self):
        done = run("outbox", "stats", *self.at)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"nothing was ever published here", done.stderr)
        self.publish()
        self.assertEqual(run("outbox", "stats", *self.at).stderr, b"")

    def test_what_cannot_be_meant(self):
        self.assertIn("--exec", self.refused("outbox", "work", *self.at))
        self.assertIn("--exec and --file exclude each other; give one of them, not both",
                      self.refused("outbox", "work", *self.at, "--exec", "true", "--file", "x"))
        self.assertIn("/no/such/prog cannot be found: No such file", self.refused("outbox", "work", *self.at, "--exec", "/no/such/prog --fast"))
        self.assertIn("is not executable", self.refused("outbox", "work", *self.at, "--exec", self.directory.name))
        for port in ("http://127.0.0.1:/hook", "http://127.0.0.1:"):
            self.assertIn("empty port", self.refused("outbox", "work", *self.at, "--http", port))
        for words in (["store", "get", "--name", "n", "--key", "k", "--store", ""], ["outbox", "stats", "--outbox", ""]):
            self.assertIn(words[-2] + " is empty", self.refused(*words))
        self.assertIn("--stream", self.refused("outbox", "work", *self.at, "--stream", "s"))
        self.assertIn("ten years", self.refused("outbox", "work", *self.at, "--exec", "true", "--lease", "4000d"))
        for words in (["outbox", "tail", *self.at, "--for"], ["seq", "next", "--store", "memory:", "--name", "n", "--wait"]):
            self.assertIn("at most 36500d", self.refused(*words, "10000000000s"))
        self.publish()
        for blank in ("", " \t\n"):
            for where in ("--exec", "--http", "--file", "--stream"):
                told = self.refused("outbox", "work", *self.at, "--until-empty", where, blank)
                self.assertIn(where + " names no ", told)
        self.assertEqual(self.stats()["events"], 1, "nothing was acknowledged")
        os.link(self.path("app.db"), self.path("other name"))
        for name in (self.path("app.db"), self.path("other name")):
            for words in (["--file", name], ["--relay", "file:" + name]):
                self.assertIn("is the database of the outbox", self.refused("outbox", "work", *self.at, "--until-empty", *words))
        self.assertEqual(self.stats()["events"], 1, "the database is whole")
        self.assertIn("http://", self.refused("outbox", "work", *self.at, "--http", "ftp://x/"))
        self.assertIn("--payload", self.refused("outbox", "publish", *self.at, "--type", "t"))
        self.assertIn("JSON", self.refused("outbox", "publish", *self.at, "--type", "t", "--payload", "{"))
        self.assertIn("--safe", self.refused("outbox", "publish", *self.at, "--type", "t", "--payload", "{}", "--safe", "very"))
        for safe in ("memory:3", "aof:1"):
            self.assertIn("no replicas", self.refused("outbox", "publish", *self.at, "--type", "t", "--payload", "{}", "--safe", safe))
        self.assertIn("--ttl", self.refused("outbox", "publish", *self.at, "--type", "t", "--payload", "{}", "--ttl", "0s"))
        self.assertIn("NAME=VALUE", self.refused("outbox", "publish", *self.at, "--type", "t", "--payload", "{}", "--header", "x"))
        self.assertIn("UUID", self.refused("outbox", "explain", *self.at, "x"))
        self.assertIn("--outbox", self.refused("outbox", "stats"))
        self.refused("outbox", "publish", *self.at, "--type", "t", "--payload", "{}", "--prefix", "{a")


if __name__ == "__main__":
    unittest.main()
