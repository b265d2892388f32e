"""holdfast completion: the script for bash sourced in bash, that for zsh loaded by a zsh on a terminal."""

import os
import pty
import select
import shlex
import signal
import subprocess
import tempfile
import time
import unittest

from holdfast_process import HOLDFAST, CommandTest


class Bash(CommandTest):
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
        self.assertEqual(self.complete("completion", ""), ["bash", "zsh"])
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


class Zsh(CommandTest):
    """An interactive zsh. A key completes, and another one writes what stands on the command line then, and the words that were offered."""

    SETTINGS = """
        fpath=(%(folder)s/functions $fpath)
        autoload -Uz compinit && compinit -u -d %(folder)s/dump
        compadd() {
          local -a matching
          if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\\ * ]]; then
            builtin compadd -A matching "$@"
            print -rl -- $matching >>%(folder)s/offered
          fi
          builtin compadd "$@"
        }
        write_line() { print -r -- "$BUFFER" >%(folder)s/line.part && command mv %(folder)s/line.part %(folder)s/line; BUFFER= }
        zle -N write_line
        bindkey '^G' write_line
        bindkey '^I' complete-word
        setopt no_beep no_auto_menu no_auto_list
        PROMPT='ready> '
    """

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = directory.name
        functions = os.path.join(self.folder, "functions")
        os.mkdir(functions)
        with open(os.path.join(functions, "_holdfast"), "w", encoding="utf-8") as file:
            file.write(self.fine("completion", "zsh"))
        with open(os.path.join(self.folder, ".zshrc"), "w", encoding="utf-8") as file:
            file.write(self.SETTINGS % {"folder": self.folder})
        child, self.terminal = pty.fork()
        if child == 0:
            os.chdir(self.folder)
            os.execvpe("zsh", ["zsh", "-d", "-i"],
                       {"PATH": os.environ["PATH"], "HOME": self.folder, "ZDOTDIR": self.folder, "TERM": "dumb", "LC_ALL": "C.UTF-8"})
        self.addCleanup(os.close, self.terminal)
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(os.kill, child, signal.SIGKILL)
        self.read_until(lambda shown: b"ready> " in shown)

    def read_until(self, condition):
        """Reads what the terminal shows, so that zsh never waits for a reader."""
        shown, deadline = b"", time.monotonic() + 120
        while not condition(shown):
            self.assertLess(time.monotonic(), deadline, shown)
            if select.select([self.terminal], [], [], 0.05)[0]:
                shown += os.read(self.terminal, 65536)

    def complete(self, typed):
        """The command line after the completion key, and what was offered."""
        line, offered = os.path.join(self.folder, "line"), os.path.join(self.folder, "offered")
        for file in (line, offered):
            if os.path.exists(file):
                os.remove(file)
        os.write(self.terminal, typed.encode() + b"\t\x07")
        self.read_until(lambda _: os.path.exists(line))
        words = []
        if os.path.exists(offered):
            with open(offered, encoding="utf-8") as file:
                words = [word for word in file.read().splitlines() if word]
        with open(line, encoding="utf-8") as file:
            return file.read().rstrip("\n"), words

    def test_commands(self):
        line, words = self.complete("holdfast ")
        self.assertLessEqual({"key", "bench", "demo", "completion"}, set(words))
        self.assertEqual(self.complete("holdfast completi"), ("holdfast completion ", ["completion"]))
        self.assertEqual(self.complete("holdfast key fa"), ("holdfast key failover ", ["failover"]))
        self.assertEqual(self.complete("holdfast key ")[1], ["failover", "cachekit", "interop", "slot", "outbox", "batch"])
        self.assertEqual(self.complete("holdfast demo "), ("holdfast demo ", []))

    def test_options(self):
        self.assertEqual(self.complete("holdfast key failover --nam"), ("holdfast key failover --name ", ["--name"]))
        self.assertEqual(set(self.complete("holdfast key slot -")[1]), {"--help", "--json", "--log", "--log-level"})
        self.assertEqual(self.complete("holdfast key slot -- -")[1], [])

    def test_values(self):
        self.assertEqual(self.complete("holdfast key failover --style ex"), ("holdfast key failover --style exact ", ["exact"]))
        self.assertEqual(self.complete("holdfast key failover --style=ex"), ("holdfast key failover --style=exact ", ["exact"]))
        self.assertEqual(self.complete("holdfast key failover --style ")[1], ["escaped", "exact"])
        self.assertEqual(self.complete("holdfast key failover --name fa")[1], [])

    def test_files(self):
        with open(os.path.join(self.folder, "cases.jsonl"), "w", encoding="utf-8"):
            self.assertEqual(self.complete("holdfast key batch ca")[0], "holdfast key batch cases.jsonl ")
            self.assertEqual(self.complete("holdfast key failover --secret-file ca")[0], "holdfast key failover --secret-file cases.jsonl ")

    def test_it_can_be_sourced(self):
        script = f'autoload -Uz compinit && compinit -u -D && source <("{HOLDFAST}" completion zsh) && print -r -- "$_comps[holdfast]"'
        done = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, timeout=60, env={**os.environ, "HOME": self.folder})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"_holdfast\n", b""))


if __name__ == "__main__":
    unittest.main()
