"""packaging/systemd: systemd accepts the units, finds them hardened, and what they start works. No service manager is needed."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from holdfast_process import HOLDFAST, CommandTest

TEMPLATES = Path(__file__).resolve().parents[2] / "packaging/systemd"
UNITS = ("holdfast-serve", "holdfast-gateway@shop", "holdfast-outbox-work@orders", "holdfast-store-clean@answers")


class Units(CommandTest):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        (self.directory / "holdfast").symlink_to(HOLDFAST)
        self.url = f"sqlite:{self.directory}/app.db"

    def unit(self, name):
        """The file of a unit, as it would be installed, and as an instance."""
        template = TEMPLATES / (re.sub("@.*", "@", name) + ".service.in")
        file = self.directory / (name + ".service")
        file.write_text(template.read_text(encoding="utf-8").replace("@CMAKE_INSTALL_FULL_BINDIR@", str(self.directory)), encoding="utf-8")
        return file

    def settings(self, name, setting):
        return re.findall(rf"^{setting}=(.*)$", self.unit(name).read_text(encoding="utf-8"), re.MULTILINE)

    def words(self, name, setting="ExecStart", **variables):
        """The words of a command: systemd splits the value of an unquoted variable at spaces."""
        (line,) = self.settings(name, setting)
        for variable, value in variables.items():
            line = line.replace("$" + variable, value)
        self.assertNotIn("$", line)
        return line.split()

    def test_every_template_is_tested(self):
        self.assertEqual({file.name for file in TEMPLATES.glob("*.service.in")}, {re.sub("@.*", "@", name) + ".service.in" for name in UNITS})

    def test_systemd_accepts_them(self):
        for name in UNITS:
            with self.subTest(name):
                done = subprocess.run(["systemd-analyze", "verify", "--man=no", self.unit(name)], capture_output=True, timeout=60)
                lines = [line for line in done.stderr.decode().splitlines() if "holdfast" in line]
                self.assertEqual((done.returncode, lines), (0, []), done.stderr.decode())

    def test_they_are_hardened(self):
        for name in UNITS:
            with self.subTest(name):
                done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=29", self.unit(name)], capture_output=True,
                                      env={**os.environ, "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": ""}, timeout=60)
                self.assertEqual(done.returncode, 0, done.stdout.decode()[-300:])
                self.assertIn("exposure level", done.stdout.decode())

    def start(self, words, **variables):
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.directory, env={**os.environ, **variables})
        self.addCleanup(process.kill)
        return process

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors.decode())

    def test_the_worker_delivers(self):
        self.fine("outbox", "publish", "--outbox", self.url, "--create-schema", "--prefix", "{orders}", "--type", "t", "--payload", "{}")
        out = self.directory / "events.jsonl"
        worker = self.start(self.words("holdfast-outbox-work@orders", WORK_OPTIONS=f"--prefix {{orders}} --file {out}"), HOLDFAST_OUTBOX=self.url)
        deadline = time.monotonic() + 60
        while not out.exists() or not out.read_text(encoding="utf-8").endswith("\n"):
            self.assertIsNone(worker.poll(), "it runs until it is stopped")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        self.end(worker)

    def test_the_cleaner_runs(self):
        self.fine("store", "put", "--store", self.url, "--create-schema", "--name", "n", "--key", "k", "--payload", "1")
        words = self.words("holdfast-store-clean@answers", CLEAN_OPTIONS="--jitter 0s --json")
        cleaner = self.start([*words, "--cron", "* * * * * *"], HOLDFAST_STORE=self.url)
        self.assertIn(b'"result":', cleaner.stdout.readline())
        self.end(cleaner)

    def test_the_server_starts(self):
        config = self.directory / "serve.toml"
        config.write_text('[serve]\nlisten = ["127.0.0.1:0"]\n[stores.main]\nurl = "memory:"\n', encoding="utf-8")
        for setting in ("ExecStartPre", "ExecStart"):
            self.assertIn("/etc/holdfast/serve.toml", self.settings("holdfast-serve", setting)[0])
        check = [word.replace("/etc/holdfast/serve.toml", str(config)) for word in self.words("holdfast-serve", "ExecStartPre")]
        self.assertEqual(subprocess.run(check, capture_output=True, cwd=self.directory, timeout=60).returncode, 0)
        server = self.start([*(word.replace("/etc/holdfast/serve.toml", str(config)) for word in self.words("holdfast-serve")), "--drain", "0s"])
        while b"ready" not in (line := server.stderr.readline()):
            self.assertNotEqual(line, b"", "it ended")
        self.end(server)

    def test_the_gateway_says_when_it_is_ready(self):
        self.assertEqual(self.settings("holdfast-gateway@shop", "Type"), ["notify"])
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(self.directory / "manager"))
            manager.settimeout(60)
            words = self.words("holdfast-gateway@shop", GATEWAY_OPTIONS="--upstream http://127.0.0.1:1 --listen 127.0.0.1:0")
            gateway = self.start(words, NOTIFY_SOCKET=str(self.directory / "manager"))
            self.assertEqual(manager.recv(100), b"READY=1")
            self.assertTrue((self.directory / "gateway.db").exists(), "its answers are in its state directory")
            self.end(gateway)
            self.assertEqual(manager.recv(100), b"STOPPING=1")

    def test_a_mistake_is_not_tried_again(self):
        for name in UNITS:
            self.assertEqual(self.settings(name, "RestartPreventExitStatus"), ["2"])
            self.assertEqual(self.settings(name, "Restart"), ["on-failure"])


if __name__ == "__main__":
    unittest.main()
