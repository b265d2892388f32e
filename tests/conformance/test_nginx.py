"""The six cases that nginx with the usual recipe gets wrong, side by side with the gateway, in front of the same upstream."""

import contextlib
import http.client
import http.server
import os
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from holdfast_process import free_port
from test_gateway import Gateway
from test_serve import LONG, wait_for

NGINX = """
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
worker_processes 1;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  proxy_cache_path {directory}/cache keys_zone=kept:1m;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://127.0.0.1:{upstream};
      proxy_cache kept;
      proxy_cache_valid 200 1s;
      proxy_cache_use_stale error timeout http_500 http_502 http_503 http_504;
    }}
  }}
}}
"""


class Upstream(http.server.ThreadingHTTPServer):
    """Answers with what a test sets: (status, fields, content, announced length), or closes the connection."""

    daemon_threads = True

    def __init__(self):
        self.answer = None
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.close_connection = True
        if self.server.answer is None:
            return
        status, fields, content, length = self.server.answer
        self.send_response(status)
        for name, value in {"Content-Length": str(length), "Connection": "close", **fields}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words):
        pass


class SideBySide(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.upstream = Upstream()
        cls.addClassCleanup(cls.upstream.server_close)
        cls.addClassCleanup(cls.upstream.shutdown)
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        os.chmod(directory.name, 0o755)
        port = free_port()
        file = Path(directory.name) / "nginx.conf"
        user = "user root;\n" if os.geteuid() == 0 else ""
        file.write_text(user + NGINX.format(directory=directory.name, port=port, upstream=cls.upstream.server_port))
        nginx = subprocess.Popen(["/usr/sbin/nginx", "-p", directory.name, "-e", f"{directory.name}/error.log", "-c", str(file)])
        cls.addClassCleanup(nginx.wait)
        cls.addClassCleanup(nginx.terminate)
        cls.gateway = Gateway(directory.name, "--upstream", f"http://127.0.0.1:{cls.upstream.server_port}")
        cls.addClassCleanup(cls.gateway.kill)
        cls.ports = {"nginx": port, "gateway": cls.gateway.port}

        def listens():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return True

        wait_for(listens, "nginx")

    def set(self, status, content, length=None, **fields):
        self.upstream.answer = (status, {name.replace("_", "-"): value for name, value in fields.items()}, content, len(content) if length is None else length)

    def get(self, server, path, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[server], timeout=LONG)
        with contextlib.closing(connection):
            connection.request("GET", path, headers=fields)
            answer = connection.getresponse()
            try:
                return answer.status, answer.read(), answer.headers
            except http.client.IncompleteRead as cut:
                return answer.status, b"CUT " + cut.partial, answer.headers

    def both(self, path, **fields):
        return {server: self.get(server, path, **fields)[:2] for server in self.ports}

    def expire(self, path):
        """nginx asks again when its copy has expired; the gateway always asks."""
        wait_for(lambda: self.get("nginx", path)[1] != b"first", f"the end of {path} in nginx")

    def test_stale_answers_that_are_forbidden(self):
        for i, directive in enumerate(["max-age=1, must-revalidate", "max-age=1, proxy-revalidate", "s-maxage=1"]):
            self.set(200, b"first", Cache_Control=directive)
            self.both(f"/forbidden/{i}")
            time.sleep(2.1)  # both count in whole seconds
            self.set(503, b"broken")
            answers = self.both(f"/forbidden/{i}")
            self.assertEqual(answers, {"nginx": (200, b"first"), "gateway": (503, b"broken")}, directive)

    def test_back_in_time_after_no_store(self):
        self.set(200, b"first")
        self.both("/back")
        self.set(200, b"second", Cache_Control="no-store")
        self.expire("/back")
        self.assertEqual(self.get("gateway", "/back")[1], b"second")
        self.set(503, b"broken")
        self.assertEqual(self.both("/back"), {"nginx": (200, b"first"), "gateway": (503, b"broken")})

    def test_back_in_time_after_not_found(self):
        self.set(200, b"first")
        self.both("/gone")
        self.set(410, b"gone")
        self.expire("/gone")
        self.assertEqual(self.get("gateway", "/gone")[:2], (410, b"gone"))
        self.set(503, b"broken")
        self.assertEqual(self.both("/gone"), {"nginx": (200, b"first"), "gateway": (410, b"gone")})

    def test_the_answer_of_another_caller(self):
        self.set(200, b"for alice")
        self.both("/caller", Authorization="Bearer alice")
        self.upstream.answer = None
        time.sleep(2.1)
        answers = self.both("/caller", Authorization="Bearer bob")
        self.assertEqual(answers["nginx"], (200, b"for alice"))
        self.assertEqual(answers["gateway"][0], 502)

    def test_a_body_that_is_cut(self):
        self.set(200, b"first")
        self.both("/cut")
        time.sleep(2.1)
        self.set(200, b"seco", length=100)
        answers = self.both("/cut")
        self.assertEqual(answers["nginx"], (200, b"CUT seco"))
        self.assertEqual(answers["gateway"], (200, b"first"))

    def test_what_the_client_is_told(self):
        self.set(200, b"first")
        self.both("/told")
        time.sleep(2.1)
        self.upstream.answer = None
        told = {server: {name for name in ("Age", "Cache-Status", "Holdfast-Answer") if name in self.get(server, "/told")[2]} for server in self.ports}
        self.assertEqual(told, {"nginx": set(), "gateway": {"Age", "Cache-Status", "Holdfast-Answer"}})


if __name__ == "__main__":
    unittest.main()
