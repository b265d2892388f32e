"""holdfast completion bash: sourced in bash, asked as bash asks."""

import os
import shlex
import subprocess
import tempfile
import unittest

from holdfast_process import HOLDFAST, CommandTest


class Completion(CommandTest):
    def complete(self, *words, folder=None):
        """What bash would offer for the last word."""
        words = " ".join(shlex.quote(word) for word in ("holdfast", *words))
        script = (f'source <("{HOLDFAST}" completion bash) && COMP_WORDS=({words}) && COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) && '
                  '_holdfast && printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, cwd=folder, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return [line for line in done.stdout.decode().splitlines() if line]

    def test_commands(self):
        commands = self.complete("")
        self.assertLessEqual({"key", "bench", "demo", "completion"}, set(commands))
        self.assertEqual(self.complete("ke"), ["key"])
        self.assertEqual(self.complete("key", ""), ["failover", "cachekit", "interop", "slot", "outbox", "batch"])
        self.assertEqual(self.complete("key", "fa"), ["failover"])
        self.assertEqual(self.complete("completion", ""), ["bash"])
        self.assertEqual(self.complete("nonsense", ""), commands)

    def test_options(self):
        self.assertEqual(self.complete("--v"), ["--version"])
        self.assertEqual(self.complete("key", "failover", "--n"), ["--name"])
        self.assertEqual(self.complete("key", "slot", "-"), ["--help", "--json", "--log", "--log-level"])
        self.assertEqual(self.complete("key", "slot", "--", "-"), [])

    def test_values(self):
        self.assertEqual(self.complete("key", "failover", "--style", ""), ["escaped", "exact"])
        self.assertEqual(self.complete("key", "failover", "--style", "ex"), ["exact"])
        self.assertEqual(self.complete("key", "failover", "--style", "=", "ex"), ["exact"])
        self.assertEqual(self.complete("key", "failover", "--style", "="), ["escaped", "exact"])
        self.assertEqual(self.complete("key", "batch", "--scheme", "inter"), ["interop", "interop-value"])
        self.assertEqual(self.complete("key", "failover", "--name", "fa"), [])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            open(os.path.join(folder, "cases one.jsonl"), "w").close()
            self.assertEqual(self.complete("key", "batch", "ca", folder=folder), ["cases one.jsonl"])
            self.assertEqual(self.complete("key", "failover", "--secret-file", "c", folder=folder), ["cases one.jsonl"])


if __name__ == "__main__":
    unittest.main()
