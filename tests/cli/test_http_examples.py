"""The programs of examples/http against a real server: what they print, that they repeat what the server asks to repeat, and how they fail."""

import contextlib
import http.client
import http.server
import os
import re
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from holdfast_process import HOLDFAST, CommandTest

EXAMPLES = Path(__file__).parents[2] / "examples" / "http"
PROGRAMS = {"client.py": ["python3"], "client.sh": ["bash"], "client.mjs": ["node"]}
LONG = 60  # seconds: never reached when all is well


class Examples(CommandTest):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.directory = Path(place.name)

    def start(self, directory):
        """Runs a server with empty databases until the end of the test; returns its address and the environment of a program."""
        directory.mkdir()
        environment = {**os.environ, "STATE_DIRECTORY": str(directory)}
        tokens = {name: self.fine("serve", "token", "add", "--role", role, env=environment).strip()
                  for name, role in (("HOLDFAST_TOKEN", "app"), ("HOLDFAST_VIEWER", "viewer"))}
        databases = [word for kind in ("store", "outbox", "sequence") for word in (f"--{kind}", f"sqlite:{directory}/{kind}.db")]
        with open(directory / "stdout", "wb") as out, open(directory / "stderr", "wb") as err:
            process = subprocess.Popen([HOLDFAST, "serve", *databases, "--create-schema", "--listen", "127.0.0.1:0", "--drain", "0s"],
                                       stdout=out, stderr=err, env=environment)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        end = time.monotonic() + LONG
        while "ready" not in (text := (directory / "stderr").read_text()):
            self.assertIsNone(process.poll(), text)
            self.assertLess(time.monotonic(), end, text)
            time.sleep(0.01)
        return re.search(r"listening on (\S+)", text)[1], tokens

    def run_program(self, name, url, tokens):
        environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        return subprocess.run([*PROGRAMS[name], EXAMPLES / name], capture_output=True, text=True, timeout=LONG,
                              env={**environment, **tokens, "HOLDFAST_URL": url})

    def assert_prints_what_is_expected(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", done.stdout), (EXAMPLES / "client.expected").read_text())

    def test_every_program_is_run(self):
        self.assertEqual({path.name for path in EXAMPLES.iterdir()}, {*PROGRAMS, "client.expected"})

    def test_the_programs_do_what_they_say(self):
        for name in PROGRAMS:
            with self.subTest(name):
                done = self.run_program(name, *self.start(self.directory / name))
                self.assert_prints_what_is_expected(done)
                self.assertEqual(done.stderr, "")

    def test_a_refused_token(self):
        url, tokens = self.start(self.directory / "server")
        for name in PROGRAMS:
            with self.subTest(name):
                done = self.run_program(name, url, {**tokens, "HOLDFAST_TOKEN": "hf_unknown"})
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stdout, "")
                self.assertIn("Unauthorized", done.stderr)

    def test_what_is_not_available_is_repeated(self):
        for name in PROGRAMS:
            with self.subTest(name):
                url, tokens = self.start(self.directory / name)
                with refusing_first(url, ["/v1/sequences/order.id/next", "/v1/outboxes/main/events"]) as (proxy, refused):
                    self.assert_prints_what_is_expected(self.run_program(name, proxy, tokens))
                    self.assertEqual(refused, [])


@contextlib.contextmanager
def refusing_first(url, paths):
    """A proxy that answers the first request for each path with 503. Yields its address and the paths that are left."""

    class Proxy(http.server.BaseHTTPRequestHandler):
        def relay(self):
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path in paths:
                paths.remove(self.path)
                self.send_response(503)
                self.send_header("Retry-After", "1")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            server = http.client.HTTPConnection(url.removeprefix("http://"), timeout=LONG)
            with contextlib.closing(server), contextlib.suppress(ConnectionError, http.client.IncompleteRead):
                server.request(self.command, self.path, content, dict(self.headers))
                answer = server.getresponse()
                self.send_response(answer.status)
                self.end_headers()  # the end of the connection is the end of the content
                while piece := answer.read1():
                    self.wfile.write(piece)

        do_GET = do_PUT = do_POST = relay

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        proxy.daemon_threads = True
        proxy.block_on_close = False
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_port}", paths
        finally:
            proxy.shutdown()
            thread.join()


if __name__ == "__main__":
    unittest.main()
