"""Runs the holdfast command and looks at it from outside. HOLDFAST names the executable."""

import contextlib
import json
import os
import pty
import random
import socket
import subprocess
import unittest

HOLDFAST = os.environ["HOLDFAST"]


def run(*words, stdin=b"", env=None, **more):
    """The finished process, with stdout and stderr as bytes."""
    words = [word if isinstance(word, bytes) else word.encode() for word in words]
    if isinstance(stdin, str):
        stdin = stdin.encode()
    environment = {**os.environ, **(env or {})}
    return subprocess.run([HOLDFAST.encode(), *words], input=stdin, capture_output=True, env=environment, timeout=60, **more)


def on_a_terminal(*words, env):
    """Runs the command on a pseudo-terminal; returns what it wrote and its exit code."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(HOLDFAST, [HOLDFAST, *words], env)
    written = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not piece:
            break
        written += piece
    os.close(terminal)
    return written.replace(b"\r\n", b"\n"), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def free_port():
    """A port below those that the system gives to clients, which could take it before a server does, or between two servers."""
    for port in random.sample(range(10_000, 22_768), 1_000):
        with contextlib.suppress(OSError), contextlib.closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port")


class CommandTest(unittest.TestCase):
    def fine(self, *words, **more):
        """Runs a command that must succeed in silence; returns its output as text."""
        done = run(*words, **more)
        self.assertEqual(done.stderr.decode(), "")
        self.assertEqual(done.returncode, 0)
        return done.stdout.decode()

    def fine_json(self, *words, **more):
        text = self.fine(*words, **more)
        self.assertEqual(text.count("\n"), 1, "one line of JSON")
        return json.loads(text)

    def assert_complaint(self, done, code):
        """One line `holdfast: what; what to do`, and the exit code. Returns the line."""
        text = done.stderr.decode()
        self.assertEqual(done.returncode, code, text)
        self.assertTrue(text.startswith("holdfast: "), text)
        self.assertTrue(text.endswith("\n"), text)
        self.assertEqual(text.count("\n"), 1, text)
        self.assertIn("; ", text)
        return text

    def refused(self, *words, code=2, **more):
        done = run(*words, **more)
        self.assertEqual(done.stdout, b"")
        return self.assert_complaint(done, code)
