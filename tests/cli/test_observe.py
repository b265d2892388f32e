"""How outbox work and store clean --watch are watched: their address for monitors, and their reports to the database."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import tempfile
import unittest
from pathlib import Path

from holdfast_process import HOLDFAST, CommandTest
from test_serve import LONG, Serve, wait_for


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=LONG)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(LONG)
        self.sock.connect(self.path)


class Observed:
    """A running command, and what it prints on standard error."""

    def __init__(self, directory, *words):
        self.errors = Path(tempfile.mkstemp(dir=directory)[1])
        with open(self.errors, "wb") as err:
            self.process = subprocess.Popen([HOLDFAST, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)

    def text(self):
        return self.errors.read_text()

    def address(self):
        wait_for(lambda: "listening on" in self.text() or self.process.poll() is not None, "listening")
        return re.search(r"listening on (\S+)\n", self.text())[1]

    def get(self, path, method="GET", **fields):
        address = self.address()
        connection = UnixConnection(address[5:]) if address.startswith("unix:") else http.client.HTTPConnection(address[7:], timeout=LONG)
        with contextlib.closing(connection):
            connection.request(method, path, headers=fields)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), dict(answer.getheaders())

    def missing(self):
        """What /readyz says."""
        status, body, _ = self.get("/readyz")
        names = re.search(r'"missing":\[(.*)\]', body)[1]
        assert status == (503 if names else 200), body
        return names

    def wait_until(self, missing):
        wait_for(lambda: self.missing() == missing, missing or "ready")

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(LONG)


class ObserveTest(CommandTest):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.file = os.path.join(self.directory, "app.db")
        self.url = "sqlite:" + self.file

    def start(self, *words):
        process = Observed(self.directory, *words)
        self.addCleanup(process.end, signal.SIGKILL)
        return process

    def worker(self, *words, url=None, create=True, target=("--file", "/dev/null")):
        return self.start("outbox", "work", "--outbox", url or self.url, *target, *(["--create-schema"] if create else []), *words)

    def cleaner(self, *words, create=True):
        return self.start("store", "clean", "--watch", "--store", self.url, *(["--create-schema"] if create else []), *words)

    def both(self, *words, **more):
        return [("worker", self.worker(*words, **more)), ("cleanup", self.cleaner(*words, **more))]

    def sql(self, statement):
        with contextlib.closing(sqlite3.connect(self.file, timeout=LONG)) as database, database:
            return database.execute(statement).fetchall()

    def instances(self):
        with contextlib.suppress(sqlite3.OperationalError):  # there is no table yet
            return dict(self.sql("SELECT INSTANCE, KIND FROM HOLDFAST_INSTANCE"))
        return {}

    def wait_for_instance(self, process, kind):
        name = f"{socket.gethostname()}:{process.process.pid}"
        wait_for(lambda: self.instances().get(name) == kind, f"report of {name}")
        return name

    def redis(self):
        """A server whose data survive a restart. Returns its port, and the function that starts it."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]

        def start():
            server = subprocess.Popen(["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "yes", "--appendfsync", "always",
                                       "--dir", self.directory], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(server.wait)
            self.addCleanup(server.kill)

            def answers():
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as client:
                    client.sendall(b"PING\r\n")
                    return client.recv(16).startswith(b"+PONG")
            wait_for(answers, "Redis")
            return server

        return port, start


class Addresses(ObserveTest):
    def test_paths_and_methods(self):
        for kind, process in self.both("--listen", "127.0.0.1:0"):
            with self.subTest(kind):
                self.assertRegex(process.address(), r"^http://127\.0\.0\.1:[1-9][0-9]*$")
                process.wait_until("")
                status, body, fields = process.get("/healthz")
                self.assertEqual((status, body), (200, '{"healthy":true}'))
                status, body, fields = process.get("/metrics")
                self.assertEqual((status, fields["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
                self.assertIn("# TYPE holdfast_" + {"worker": "outbox", "cleanup": "cleanup"}[kind], body)
                for path in ("/healthz", "/readyz", "/metrics"):
                    status, body, fields = process.get(path, "HEAD")
                    self.assertEqual((status, body), (200, ""))
                    self.assertGreater(int(fields["Content-Length"]), 0)
                    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
                        status, _, fields = process.get(path, method)
                        self.assertEqual((method, status, fields["Allow"]), (method, 405, "GET, HEAD"))
                for path in ("/", "/v1/status", "/healthz/", "/metrics/x", "/v1/openapi.json", "/HEALTHZ"):
                    self.assertEqual((path, process.get(path)[0]), (path, 404))
                self.assertEqual(process.get("/metrics?x=1")[0], 200)
                self.assertEqual(process.end(), 0)

    def test_a_foreign_host_is_refused(self):
        process = self.worker("--listen", "127.0.0.1:0")
        self.assertEqual(process.get("/metrics", Host="attacker.example")[0], 421)
        self.assertEqual(process.get("/metrics", Host="localhost:1")[0], 200)

    def test_a_unix_socket(self):
        path = os.path.join(self.directory, "observe.sock")
        process = self.cleaner("--listen", "unix:" + path)
        self.assertEqual(process.address(), "unix:" + path)
        process.wait_until("")
        self.assertEqual(process.end(), 0)
        self.assertFalse(os.path.exists(path))

    def test_other_machines(self):
        for words in (["outbox", "work", "--outbox", self.url, "--file", "-"], ["store", "clean", "--store", self.url, "--watch"]):
            for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:9100"):
                line = self.refused(*words, "--create-schema", "--listen", address)
                self.assertIn("--allow-plain", line)
                self.assertIn(address, line)
            self.assertIn("--listen", self.refused(*words, "--create-schema", "--allow-plain"))
        self.assertFalse(os.path.exists(self.file), "the address is checked first")
        process = self.worker("--listen", "0.0.0.0:0", "--allow-plain")
        self.assertEqual(process.address()[:15], "http://0.0.0.0:")
        # Monitors use the name of the machine.
        self.assertEqual(process.get("/healthz", Host="worker-7.example")[0], 200)

    def test_mistakes(self):
        self.assertIn("--watch", self.refused("store", "clean", "--store", self.url, "--listen", "127.0.0.1:0"))
        with socket.create_server(("127.0.0.1", 0)) as used:
            address = f"127.0.0.1:{used.getsockname()[1]}"
            line = self.refused("outbox", "work", "--outbox", self.url, "--create-schema", "--file", "-", "--listen", address, code=3)
            self.assertIn(address, line)
        for address in ("127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536"):
            self.refused("outbox", "work", "--outbox", self.url, "--create-schema", "--file", "-", "--listen", address)

    def test_malformed_requests_and_floods(self):
        process = self.worker("--listen", "127.0.0.1:0")
        address = ("127.0.0.1", int(process.address().rsplit(":", 1)[1]))
        for request in (b"GET /metrics\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET /metrics HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
                        b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n"):
            with socket.create_connection(address, LONG) as client:
                client.sendall(request)
                with contextlib.suppress(ConnectionResetError):
                    self.assertRegex(client.recv(4096)[:13] or b"HTTP/1.1 400 ", rb"^HTTP/1\.1 4\d\d ")
        idle = [socket.create_connection(address, LONG) for _ in range(200)]
        self.assertEqual(process.get("/healthz")[0], 200)
        for client in idle:
            client.close()


class Readiness(ObserveTest):
    def test_redis_is_killed_and_returns(self):
        port, start = self.redis()
        server = start()
        process = self.worker("--listen", "127.0.0.1:0", url=f"redis://127.0.0.1:{port}", create=False)
        process.wait_until("")
        server.kill()
        server.wait()
        process.wait_until('"database"')
        self.assertEqual(process.get("/healthz")[0], 200)
        self.assertEqual(process.get("/metrics")[0], 200)
        start()
        process.wait_until("")

    def test_redis_hangs(self):
        port, start = self.redis()
        server = start()
        process = self.worker("--listen", "127.0.0.1:0", url=f"redis://127.0.0.1:{port}", create=False)
        process.wait_until("")
        server.send_signal(signal.SIGSTOP)
        process.wait_until('"database"')
        self.assertEqual(process.get("/healthz")[0], 200)
        server.send_signal(signal.SIGCONT)
        process.wait_until("")

    def test_stopped_while_the_database_hangs(self):
        port, start = self.redis()
        server = start()
        process = self.worker("--listen", "127.0.0.1:0", url=f"redis://127.0.0.1:{port}", create=False)
        process.wait_until("")
        server.send_signal(signal.SIGSTOP)
        process.wait_until('"database"')
        self.assertEqual(process.end(), 0)

    def test_a_cleaner_whose_table_is_away(self):
        process = self.cleaner("--listen", "127.0.0.1:0")
        process.wait_until("")
        self.assertIn("\nholdfast_ready 1\n", process.get("/metrics")[1])
        self.sql("ALTER TABLE FAILOVER_STORE RENAME TO AWAY")
        process.wait_until('"database"')
        body = process.get("/metrics")[1]
        self.assertIn("\nholdfast_ready 0\n", body)
        self.assertIn('\nholdfast_missing{name="database"} 1\n', body)
        self.sql("ALTER TABLE AWAY RENAME TO FAILOVER_STORE")
        process.wait_until("")

    def test_a_worker_without_a_lane_is_ready(self):
        first = self.worker("--listen", "127.0.0.1:0")
        first.wait_until("")
        second = self.worker("--listen", "127.0.0.1:0")
        second.wait_until("")
        self.assertIsNone(first.process.poll())

    def test_a_worker_drains(self):
        started, finish = (os.path.join(self.directory, name) for name in ("started", "finish"))
        self.fine("outbox", "publish", "--outbox", self.url, "--create-schema", "--type", "t", "--payload", "{}")
        process = self.worker("--listen", "127.0.0.1:0", target=("--exec", f"touch {started}; until test -e {finish}; do sleep 0.05; done"))
        wait_for(lambda: os.path.exists(started), "delivery")
        process.process.send_signal(signal.SIGTERM)
        process.wait_until('"draining"')
        self.assertEqual(process.get("/healthz")[0], 200)
        Path(finish).touch()
        self.assertEqual(process.process.wait(LONG), 0)


class Reports(ObserveTest):
    def test_appears_and_leaves(self):
        for kind, process in self.both():
            with self.subTest(kind):
                self.wait_for_instance(process, kind)
                self.assertEqual(process.end(), 0)
                self.assertNotIn(kind, self.instances().values())
                self.assertEqual(process.text(), "")

    def test_a_killed_process_turns_silent(self):
        processes = self.both()
        names = {kind: self.wait_for_instance(process, kind) for kind, process in processes}
        for service in ("stores", "outboxes"):
            folder = os.path.join(self.directory, service)
            os.mkdir(folder)
            server = Serve(folder, config=f'[{service}.main]\nurl = "{self.url}"\n')
            self.addCleanup(server.kill)

            def shown(server=server):
                status, body, _ = server.get("/v1/status")
                self.assertEqual(status, 200, body)
                return {each["id"]: each for each in json.loads(body)["instances"]}
            for kind, name in names.items():
                wait_for(lambda: name in shown(), f"{name} in {service}")
                self.assertEqual((shown()[name]["kind"], shown()[name]["silent"]), (kind, False))
            if service == "outboxes":
                for _, process in processes:
                    process.end(signal.SIGKILL)
                # As if half a minute had passed: three intervals of 10 s.
                self.assertEqual(sorted(self.instances()), sorted(names.values()))
                self.sql("UPDATE HOLDFAST_INSTANCE SET SEEN = SEEN - 31000000")
                wait_for(lambda: all(shown()[name]["silent"] for name in names.values()), "silent")

    def test_without_tables(self):
        """One line; and the process appears when another one has created the tables."""
        self.fine("outbox", "publish", "--outbox", self.url, "--create-schema", "--type", "t", "--payload", "{}")
        self.fine("store", "clean", "--store", self.url, "--create-schema")
        processes = self.both(create=False)
        for _, process in processes:
            wait_for(lambda: process.text().endswith("\n"), "line")
        self.wait_for_instance(self.worker(), "worker")
        for kind, process in processes:
            self.wait_for_instance(process, kind)
            self.assertEqual(process.end(), 0)
            self.assertRegex(process.text(), r"^holdfast: [^\n]*--create-schema[^\n]*\n$")
            self.assertNotIn("warning", process.text())

    def test_redis(self):
        port, start = self.redis()
        start()
        process = self.worker(url=f"redis://127.0.0.1:{port}", create=False)
        folder = os.path.join(self.directory, "serve")
        os.mkdir(folder)
        server = Serve(folder, config=f'[outboxes.main]\nurl = "redis://127.0.0.1:{port}"\n')
        self.addCleanup(server.kill)
        name = f'"{socket.gethostname()}:{process.process.pid}"'.encode()
        wait_for(lambda: name in server.get("/v1/status")[1], "report")
        self.assertEqual(process.end(), 0)
        self.assertEqual(process.text(), "")
        wait_for(lambda: name not in server.get("/v1/status")[1], "removal")

    def test_runs_that_end_do_not_report(self):
        self.fine("outbox", "work", "--outbox", self.url, "--create-schema", "--file", "-", "--until-empty")
        self.fine("store", "clean", "--store", self.url, "--create-schema")
        self.assertNotIn(("HOLDFAST_INSTANCE",), self.sql("SELECT name FROM sqlite_master"))


class Words(ObserveTest):
    def test_help_and_completion(self):
        for words in (["outbox", "work"], ["store", "clean"]):
            text = self.fine(*words, "--help")
            self.assertIn("--listen ADDRESS", text)
            self.assertIn("--allow-plain", text)
            script = (f'source <("{HOLDFAST}" completion bash) && COMP_WORDS=(holdfast {" ".join(words)} --l) && COMP_CWORD=3 && _holdfast && '
                      'printf "%s\\n" "${COMPREPLY[@]}"')
            done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, timeout=LONG)
            self.assertIn(b"--listen\n", done.stdout, done.stderr)


if __name__ == "__main__":
    unittest.main()
