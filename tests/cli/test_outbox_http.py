"""holdfast outbox work --http against servers that mean harm: small servers on loopback, measured from outside."""

import contextlib
import gzip
import json
import os
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

from holdfast_process import HOLDFAST, CommandTest


class HostileServer:
    """Reads one request from each connection and lets `answer(connection)` do what it wants. Keeps the requests as they came."""

    def __init__(self, answer):
        self.answer = answer
        self.requests = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.closing = False
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.handle, args=(connection,), daemon=True).start()

    def handle(self, connection):
        with contextlib.suppress(OSError), connection:
            connection.settimeout(20)
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(65536) or b"\r\n\r\n"
            self.requests.append(request)
            self.answer(connection)

    def close(self):
        self.closing = True
        self.listener.close()


def send_slowly(server, connection, data, pause=0.5):
    for byte in data:
        if server.closing:
            return
        connection.sendall(bytes([byte]))
        time.sleep(pause)


class HostileHttp(CommandTest):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.at = ["--outbox", f"sqlite:{self.directory.name}/app.db", "--create-schema"]

    def server(self, answer):
        server = HostileServer(answer)
        self.addCleanup(server.close)
        return server

    def publish(self, *words):
        return self.fine("outbox", "publish", *self.at, "--type", "t", "--payload", '{"n":1}', *words).strip()

    def work(self, server, *words, scheme="http", env=None):
        """What the worker did, its peak of resident memory in KiB, and the seconds that it took."""
        command = [HOLDFAST, "outbox", "work", *self.at, "--json", "--until-empty", "--max-attempts", "1", "--http",
                   f"{scheme}://localhost:{server.port}/events", *words]
        began = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            worker = subprocess.Popen(command, stdout=out, stderr=err, env={**os.environ, **(env or {})})
            killer = threading.Timer(40, worker.kill)
            killer.start()
            _, status, usage = os.wait4(worker.pid, 0)
            killer.cancel()
            worker.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            text, complaint = out.read(), err.read()
        self.assertIn(worker.returncode, (0, 1), complaint)
        return json.loads(text), usage.ru_maxrss, time.monotonic() - began

    def last_error(self, id):
        return self.fine_json("outbox", "show", *self.at, id)["last_error"]

    def test_a_compressed_answer_stays_compressed(self):
        body = gzip.compress(bytes(1 << 30), 9)
        self.assertLess(len(body), 1_100_000)

        def answer(connection):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body))
            connection.sendall(body)

        server = self.server(answer)
        self.publish("--header", "Accept-Encoding=gzip")
        did, peak, took = self.work(server)
        self.assertEqual(did["done"], 1, "the status says that it was accepted")
        self.assertLess(peak, 100_000)
        self.assertLess(took, 20)
        self.assertNotIn(b"gzip", server.requests[0])
        self.assertNotIn(b"br", server.requests[0].lower().split(b"accept-encoding:")[1].split(b"\r\n")[0])

    def test_an_endless_body(self):
        def answer(connection):
            connection.sendall(b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                connection.sendall(b"10000\r\n" + bytes(65536) + b"\r\n")

        self.publish()
        did, peak, took = self.work(self.server(answer))
        self.assertEqual(did["throttled"], 1)
        self.assertLess(peak, 100_000)
        self.assertLess(took, 20)

    def test_an_endless_header(self):
        def many(connection):
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while True:
                connection.sendall(b"".join(b"X-%d: %s\r\n" % (n, b"x" * 1000) for n in range(64)))

        def long(connection):
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while True:
                connection.sendall(b"x" * 65536)

        def status(connection):
            connection.sendall(b"HTTP/1.1 200 " + b"x" * 60_000 + b"\r\n\r\n")
            time.sleep(1)

        def chunk(connection):
            connection.sendall(b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n1;")
            while True:
                connection.sendall(b"x" * 65536)

        for answer in (many, long, status, chunk):
            with self.subTest(answer=answer.__name__):
                id = self.publish()
                did, peak, took = self.work(self.server(answer))
                self.assertEqual(did["parked"], 1)
                self.assertLess(peak, 100_000)
                self.assertLess(took, 20)
                self.assertIn("HTTP status 500" if answer is chunk else "the header of the answer", self.last_error(id))

    def test_informational_answers_come_before_the_answer(self):
        def answer(connection):
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n")
            time.sleep(0.1)
            connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\nLink: </x>\r\n\r\nHTTP/1.1 201 Created\r\n"
                               b"Content-Length: 0\r\n\r\n")

        self.publish()
        did, _, _ = self.work(self.server(answer))
        self.assertEqual((did["done"], did["retried"]), (1, 0))

        def endless(connection):
            while True:
                connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 100)

        id = self.publish()
        did, _, took = self.work(self.server(endless))
        self.assertEqual(did["parked"], 1)
        self.assertLess(took, 20)
        self.assertIn("too long", self.last_error(id))

        def switching(connection):
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        id = self.publish()
        did, _, _ = self.work(self.server(switching))
        self.assertEqual(did["parked"], 1)
        self.assertIn("101", self.last_error(id))

    def test_a_connection_that_the_server_closed_while_it_was_idle(self):
        goodbyes = {"silent": b"", "says why": b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"}
        for name, goodbye in goodbyes.items():
            with self.subTest(name):
                idle = threading.Event()

                def answer(connection, goodbye=goodbye, idle=idle):
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                    time.sleep(0.3)
                    connection.sendall(goodbye)
                    idle.set()

                server = self.server(answer)
                worker = subprocess.Popen([HOLDFAST, "outbox", "work", *self.at, "--json", "--max-attempts", "1", "--http",
                                           f"http://localhost:{server.port}/events"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                try:
                    for _ in range(3):
                        idle.clear()
                        self.publish()
                        self.assertTrue(idle.wait(20))
                        time.sleep(0.2)  # the end of the connection is on its way
                finally:
                    worker.terminate()
                    out, complaint = worker.communicate(timeout=20)
                did = json.loads(out)
                self.assertEqual((did["done"], did["retried"], did["parked"]), (3, 0, 0), complaint)
                self.assertEqual(len(server.requests), 3)

    def test_a_trickle_does_not_outlive_the_timeout(self):
        def header(connection):
            send_slowly(server, connection, b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1000)

        def body(connection):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            send_slowly(server, connection, b"x" * 1000)

        def until_the_end(connection):
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            send_slowly(server, connection, b"x" * 1000)

        for answer in (header, body, until_the_end):
            with self.subTest(answer=answer.__name__):
                server = self.server(answer)
                id = self.publish()
                did, _, took = self.work(server, "--timeout", "2s")
                self.assertEqual((did["parked"], did["done"]), (1, 0))
                self.assertGreater(took, 1.5)
                self.assertLess(took, 8)
                self.assertIn("not complete within 2000 ms", self.last_error(id))

    def test_a_trickling_tls_handshake(self):
        # The header of a TLS record of 16 KiB, and then its bytes, one at a time.
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        class Server:
            port = listener.getsockname()[1]
            closing = False

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    connection.recv(65536)
                    threading.Thread(target=trickle, args=(connection,), daemon=True).start()

        def trickle(connection):
            with contextlib.suppress(OSError):
                send_slowly(Server, connection, b"\x16\x03\x03\x40\x00\x02" + bytes(100))

        threading.Thread(target=serve, daemon=True).start()
        self.addCleanup(setattr, Server, "closing", True)
        id = self.publish()
        did, _, took = self.work(Server, "--timeout", "2s", scheme="https")
        self.assertEqual(did["parked"], 1)
        self.assertLess(took, 8)
        self.assertIn("not complete within 2000 ms", self.last_error(id))

    def test_tls_still_works(self):
        key, certificate = (os.path.join(self.directory.name, name) for name in ("key.pem", "cert.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)

        def answer(connection):
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            time.sleep(0.5)

        class TlsServer(HostileServer):
            def handle(self, connection):
                with contextlib.suppress(OSError):
                    super().handle(context.wrap_socket(connection, server_side=True))

        server = TlsServer(answer)
        self.addCleanup(server.close)
        id = self.publish()
        did, _, _ = self.work(server, "--timeout", "10s")
        self.assertEqual(did["done"], 0)
        id = self.publish()
        did, _, _ = self.work(server, "--timeout", "10s", scheme="https")
        self.assertEqual(did["parked"], 1, "nothing says that this certificate is right")
        self.assertIn("SSL", self.last_error(id))
        self.publish()
        did, _, _ = self.work(server, "--timeout", "10s", scheme="https", env={"SSL_CERT_FILE": certificate})
        self.assertEqual(did["done"], 1)
        self.assertIn(b"POST /events HTTP/1.1", server.requests[-1])


if __name__ == "__main__":
    unittest.main()
