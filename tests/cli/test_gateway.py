"""holdfast gateway in front of a real upstream process: killed, frozen, slow; kill -9 of the gateway; SIGTERM; [gateway] of serve.toml."""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from holdfast_process import HOLDFAST, CommandTest, free_port
from test_serve import LONG, wait_for

UPSTREAM = """
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.path.startswith("/slow"):
            time.sleep(60)
        body = ("answer to " + self.path).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass

ThreadingHTTPServer.request_queue_size = 128
server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


class Upstream:
    """A process that answers each path with its name."""

    def __init__(self):
        # Not a port of the system's choice: it could give that to another process when this one was killed.
        for _ in range(10):
            self.process = subprocess.Popen([sys.executable, "-c", UPSTREAM, str(free_port())], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            line = self.process.stdout.readline()
            if line:
                break
            self.kill()  # another process was faster
        self.port = int(line)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def kill(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Gateway:
    """A running `holdfast gateway`, or with a configuration a `holdfast serve`."""

    def __init__(self, directory, *words, config=None):
        self.errors = Path(directory) / "stderr"
        if config is not None:
            file = Path(directory) / "serve.toml"
            file.write_text(config)
            words = ["serve", "--config", file, "--open", "--listen", "127.0.0.1:0", "--drain", "0s", *words]
        else:
            words = ["gateway", "--listen", "127.0.0.1:0", "--store", f"sqlite:{directory}/answers.db", *words]
        with open(self.errors, "wb") as err, open(Path(directory) / "stdout", "ab") as out:
            self.process = subprocess.Popen([HOLDFAST, *map(str, words)], stdout=out, stderr=err, cwd=directory, env={**os.environ, "STATE_DIRECTORY": str(directory)})
        try:
            wait_for(lambda: self.address() or self.process.poll() is not None, "listening")
            assert self.process.poll() is None, self.errors.read_text()
        except AssertionError:
            self.kill()
            raise
        self.port = int(self.address().rsplit(":", 1)[1])

    def address(self):
        match = re.search(r"gateway on (http://\S+)\n", self.errors.read_text())
        return match and match[1]

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG)

    def get(self, path, **fields):
        with contextlib.closing(self.connect()) as connection:
            connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in fields.items()})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.headers.get("Cache-Status", "")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LONG)

    def kill(self):
        self.process.kill()
        self.process.wait()


class GatewayTest(CommandTest):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.upstream = Upstream()
        self.addCleanup(self.upstream.kill)

    def gateway(self, *words, **more):
        result = Gateway(self.directory, *words, **more)
        self.addCleanup(result.kill)
        return result

    def test_upstream_killed_frozen_slow(self):
        gateway = self.gateway("--upstream", self.upstream.url, "--deadline", "500ms")
        wait_for(lambda: gateway.get("/a")[2] == "holdfast;fwd=miss;stored", "a live answer")
        self.assertEqual(gateway.get("/slow")[0], 504)
        self.upstream.process.send_signal(signal.SIGSTOP)
        for _ in range(3):
            status, body, told = gateway.get("/a")
            self.assertEqual((status, body), (200, "answer to /a"))
            self.assertRegex(told, r"^holdfast;fwd=stale;fwd-status=504;ttl=-?\d+;detail=late$")
        self.upstream.process.send_signal(signal.SIGCONT)
        wait_for(lambda: gateway.get("/a")[2] == "holdfast;fwd=miss;stored", "a live answer after SIGCONT")
        self.assertEqual(gateway.stop(), 0)
        # A slow machine must not make the failure a late one.
        gateway = self.gateway("--upstream", self.upstream.url, "--deadline", "60s")
        self.assertEqual(gateway.get("/a")[2], "holdfast;fwd=miss;stored")
        self.upstream.process.kill()
        self.upstream.process.wait()
        status, body, told = gateway.get("/a")
        self.assertEqual((status, body), (200, "answer to /a"))
        self.assertRegex(told, r"detail=(unreachable|cut)$")
        self.assertEqual(gateway.get("/b")[0], 502)
        self.assertEqual(gateway.stop(), 0)

    def test_sighup_reads_the_routes_again(self):
        def configuration(routes):
            return f'[gateway]\nlisten = ["127.0.0.1:0"]\n[stores.main]\nurl = "memory:"\n{routes}'

        def reload(routes, message):
            (Path(self.directory) / "serve.toml").write_text(configuration(routes))
            count = gateway.errors.read_text().count(message)
            gateway.process.send_signal(signal.SIGHUP)
            wait_for(lambda: gateway.errors.read_text().count(message) > count, message)

        route = f'[gateway.routes.%s]\npath = "%s"\nupstream = ["{self.upstream.url}"]\n'
        gateway = self.gateway(config=configuration(route % ("a", "/a")))
        self.assertEqual([gateway.get(path)[0] for path in ("/a", "/b")], [200, 404])
        reload(route % ("a", "/a") + route % ("b", "/b"), "the configuration was read again")
        self.assertNotIn("restart", gateway.errors.read_text())
        wait_for(lambda: gateway.get("/b")[0] == 200, "the added route")
        # What is wrong changes nothing.
        reload(route % ("a", "/a") + route % ("b", "/b") + "hold = -1\n", "the old one stays")
        reload((route % ("a", "/a")).replace("http:", "ftp:"), "the old one stays")
        reload(route % ("c", "/c") + '[failover.points.c]\nexpiry = "1h"\n', "to add it, restart the server")
        self.assertEqual([gateway.get(path)[0] for path in ("/a", "/b", "/c")], [200, 200, 404])
        reload(route % ("a", "/"), "the configuration was read again")
        wait_for(lambda: gateway.get("/c")[0] == 200, "the changed route")
        self.assertEqual(gateway.stop(), 0)

    def test_observed(self):
        gateway = self.gateway("--upstream", self.upstream.url, "--observe", "127.0.0.1:0")
        address = wait_for(lambda: re.search(r"metrics on http://127\.0\.0\.1:(\d+)/metrics\n", gateway.errors.read_text()), "the address")

        def observe(path):
            connection = http.client.HTTPConnection("127.0.0.1", int(address[1]), timeout=LONG)
            with contextlib.closing(connection):
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
        wait_for(lambda: observe("/readyz") == (200, '{"ready":true,"missing":[]}'), "ready")
        self.assertEqual(observe("/healthz")[0], 200)
        self.assertEqual(gateway.get("/a")[0], 200)
        wait_for(lambda: '\nholdfast_gateway_requests_total{outcome="live",route="gateway"} 1\n' in observe("/metrics")[1], "the request")
        self.assertIn("\nholdfast_ready 1\n", observe("/metrics")[1])
        # The gauges of reports, too.
        wait_for(lambda: '\nholdfast_failover_healthy 1\n' in observe("/metrics")[1], "a report")
        self.assertEqual(gateway.stop(), 0)
        self.assertIn("--allow-plain", self.refused("gateway", "--upstream", self.upstream.url, "--observe", "0.0.0.0:0"))

    def test_answers_survive_a_restart(self):
        gateway = self.gateway("--upstream", self.upstream.url)
        self.assertEqual(gateway.get("/a")[0], 200)
        self.assertEqual(gateway.stop(), 0)
        gateway = self.gateway("--upstream", self.upstream.url)
        self.upstream.process.kill()
        self.upstream.process.wait()
        self.assertEqual(gateway.get("/a")[:2], (200, "answer to /a"))

    def test_stored_means_stored_after_kill_9(self):
        config = f"""
[stores.main]
url = "sqlite:{self.directory}/answers.db"
create-schema = true
payload-column = "bytes"
[failover.store]
async = false
[gateway]
listen = "127.0.0.1:0"
[gateway.routes.r]
upstream = "{self.upstream.url}"
"""
        gateway = self.gateway(config=config)
        told, lock = [], threading.Lock()

        def client(number):
            with contextlib.suppress(OSError, http.client.HTTPException):
                for i in range(10_000):
                    status, body, cache_status = gateway.get(f"/{number}/{i}")
                    if status == 200 and cache_status.endswith(";stored"):
                        with lock:
                            told.append((f"/{number}/{i}", body))

        clients = [threading.Thread(target=client, args=(number,)) for number in range(4)]
        for one in clients:
            one.start()
        wait_for(lambda: len(told) >= 100, "100 stored answers")
        gateway.kill()
        for one in clients:
            one.join()
        self.upstream.process.kill()
        self.upstream.process.wait()
        gateway = self.gateway(config=config)
        for path, body in told:
            self.assertEqual(gateway.get(path)[:2], (200, body))

    def test_sigterm_under_load_answers_what_was_accepted(self):
        gateway = self.gateway("--upstream", self.upstream.url)
        answered, failures = [0] * 4, []

        def client(number):
            with contextlib.closing(gateway.connect()) as connection:
                for i in range(10_000):
                    try:
                        connection.request("GET", f"/{number}/{i}")
                        answer = connection.getresponse()
                        answer.read()
                        answered[number] += 1
                    except (ConnectionRefusedError, http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as problem:
                        # Allowed only for a connection that the gateway had ended.
                        if not isinstance(problem, ConnectionRefusedError) and connection.sock is not None:
                            failures.append(repr(problem))
                        return
                    if answer.status != 200:
                        failures.append(answer.status)
                    if answer.headers.get("Connection") == "close":
                        return

        clients = [threading.Thread(target=client, args=(number,)) for number in range(4)]
        for one in clients:
            one.start()
        # All clients have a connection: one that the gateway has not accepted yet could be reset.
        wait_for(lambda: min(answered) >= 25, "25 answers for each client")
        self.assertEqual(gateway.stop(), 0)
        for one in clients:
            one.join()
        self.assertEqual(failures, [])

    def test_access_log(self):
        log = Path(self.directory) / "access.log"
        gateway = self.gateway("--upstream", self.upstream.url, "--access-log", log)
        gateway.get("/a?token=secret")
        self.upstream.process.kill()
        self.upstream.process.wait()
        gateway.get("/a?token=secret")
        self.assertEqual(gateway.stop(), 0)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual([(line["outcome"], line["status"], line["route"], line["path"]) for line in lines],
                         [("live", 200, "gateway", "/a?token=***"), ("stale", 200, "gateway", "/a?token=***")])

    def test_bad_input(self):
        for words, expected in [
            ((), "--upstream"),
            (("--upstream", "ftp://a"), "--upstream ftp://a: an upstream is http://host:port"),
            (("--upstream", "localhost:8080"), "--upstream localhost:8080: an upstream is http://host:port"),
            (("--upstream", "nonsense"), "--upstream nonsense: an upstream is http://host:port"),
            (("--upstream", "http://a/path"), "without a path"),
            (("--upstream", "http://a", "--expiry", "soon"), "--expiry 'soon' is not a time"),
            (("--upstream", "http://a", "--deadline", "0"), "--deadline '0' is not a time"),
            (("--upstream", "http://a", "--listen", "0.0.0.0:0"), "--listen 0.0.0.0:0 can be reached from other machines"),
        ]:
            done = subprocess.run([HOLDFAST, "gateway", "--store", "memory:", *words], capture_output=True, text=True, timeout=LONG, cwd=self.directory)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(expected, done.stderr)
            self.assertNotRegex(done.stderr, r"gateway\.routes|failover\.points|\bline \d")

    def test_routes_that_cannot_be_meant(self):
        route = '[gateway.routes.%s]\npath = "%s"\nupstream = ["http://a"]\n'
        file = Path(self.directory) / "serve.toml"
        for text, expected in [
            (route % ("a", "/x") + route % ("b", "/x/"), "gateway.routes.b: has the path and host of a"),
            (route % ("a", "/a/../b"), "line 2: gateway.routes.a.path: matches no target"),
            (route % ("a", "/a?b"), "line 2: gateway.routes.a.path: matches no target"),
            (route % ("a", "/") + 'vary = ["*"]\n', "line 4: gateway.routes.a.vary: '*' is not the name of a field"),
        ]:
            file.write_text(text + '[stores.main]\nurl = "memory:"\n')
            done = subprocess.run([HOLDFAST, "config", "check", file], capture_output=True, text=True, timeout=LONG)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(expected, done.stderr)

    def invalidate(self, *words):
        done = subprocess.run([HOLDFAST, "gateway", "invalidate", "--store", f"sqlite:{self.directory}/answers.db", *words], capture_output=True, text=True, timeout=LONG)
        return done.returncode, done.stdout.strip() or done.stderr.strip()

    def test_invalidate(self):
        gateway = self.gateway("--upstream", self.upstream.url)
        for path in ("/a/1", "/a/2?x=1", "/b/1", "/c"):
            self.assertEqual(gateway.get(path)[0], 200)
        self.assertEqual(gateway.stop(), 0)
        self.assertEqual(self.invalidate("--below", "/a/"), (0, "2 of 4 answers invalidated"))
        self.assertEqual(self.invalidate("--below", "/a/"), (1, "0 of 4 answers invalidated"))
        self.assertEqual(self.invalidate("--target", "/b/1"), (0, "1 of 4 answers invalidated"))
        for words, expected in [((), "give one of"), (("--below", "/a?b"), "without a query"), (("--target", "a"), "begins with a slash")]:
            code, message = self.invalidate(*words)
            self.assertEqual(code, 2)
            self.assertIn(expected, message)
        self.upstream.kill()
        gateway = self.gateway("--upstream", self.upstream.url)
        self.assertEqual([gateway.get(path)[0] for path in ("/a/1", "/a/2?x=1", "/b/1", "/c")], [502, 502, 502, 200])

    def test_routes_of_serve_toml(self):
        second = Upstream()
        self.addCleanup(second.kill)
        gateway = self.gateway(config=f"""
[stores.main]
url = "memory:"
[gateway]
listen = "127.0.0.1:0"
[gateway.routes.all]
upstream = "{self.upstream.url}"
[gateway.routes.api]
path = "/api"
upstream = ["{second.url}"]
[failover.points.api]
expiry = "1h"
""")
        self.upstream.process.kill()
        self.upstream.process.wait()
        self.assertEqual(gateway.get("/api/x")[:2], (200, "answer to /api/x"))
        self.assertEqual(gateway.get("/other")[0], 502)
        self.assertEqual(gateway.get("/v1/status")[0], 502)
        self.assertEqual(gateway.stop(), 0)

    def test_mistakes_of_serve_toml(self):
        file = Path(self.directory) / "serve.toml"
        file.write_text('[stores.main]\nurl = "memory:"\n[gateway.routes.a]\npath = "x"\nvary = ["cookie", "a b"]\nfailures = ["200"]\n[gateway.routes.b]\nupstream = "http://a"\npaht = "/"\n')
        done = subprocess.run([HOLDFAST, "serve", "--config", str(file), "--check"], capture_output=True, text=True, timeout=LONG)
        self.assertEqual(done.returncode, 2, done.stderr)
        for expected in ["path: begins with a slash", "upstream: a route needs a server", "'a b' is not the name of a field", "'200' is not a status", "gateway.secret", "the nearest is gateway.routes.b.path"]:
            self.assertIn(expected, done.stderr)


if __name__ == "__main__":
    unittest.main()
