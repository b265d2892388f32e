"""--json: every command that prints a result has it, and prints one JSON object per line."""

import json
import os
import tempfile
import unittest

from holdfast_process import CommandTest, run
from test_usage import tree

# What has no result to print: servers, scripts for shells, manual pages, a tour for people.
WITHOUT_RESULT = [["serve"], ["gateway"], ["demo"], ["completion", "bash"], ["completion", "zsh"], ["man"]]


class Json(CommandTest):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.at = f"sqlite:{self.directory.name}/app.db"
        self.keys = os.path.join(self.directory.name, "keys")
        with open(self.keys, "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write("k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")
        self.config = os.path.join(self.directory.name, "serve.toml")
        with open(self.config, "w", encoding="ascii") as file:
            file.write(f"[stores.main]\nurl = '{self.at}'\n")

    def commands(self):
        """A command line for each command that needs no server. They run in this order, on one database."""
        store, outbox, entry = ("--store", self.at), ("--outbox", self.at), ("--name", "n", "--key", "k")
        event = ("--type", "t", "--payload", "{}", "--id", "018f2b6e-5c1e-7000-8000-000000000001")
        nightly = ("nightly", "0 3 1 1 *", "--type", "t", "--payload", "{}")
        return [
            (["store", "schema"], ("--dialect", "sqlite")),
            (["seq", "schema"], ("--dialect", "sqlite")),
            (["outbox", "schema"], ("--dialect", "sqlite")),
            (["store", "put"], (*store, "--create-schema", *entry, "--payload", "1")),
            (["store", "get"], (*store, *entry)),
            (["store", "list"], (*store, "--name", "n")),
            (["store", "names"], store),
            (["store", "stats"], (*store, "--name", "n")),
            (["store", "export"], (*store, "--all")),
            (["store", "clean"], store),
            (["store", "rekey"], (*store, "--key-file", self.keys, "--allow-plaintext")),
            (["store", "rm"], (*store, *entry)),
            (["store", "doctor"], store),
            (["seq", "next"], (*store, "--create-schema", "--name", "ids")),
            (["seq", "peek"], (*store, "--name", "ids")),
            (["seq", "list"], store),
            (["seq", "ensure"], (*store, "--name", "ids", "--id", "100")),
            (["seq", "define"], (*store, "--name", "ids")),
            (["seq", "reset"], (*store, "--name", "ids", "--last", "1", "--epoch", "7", "--next", "1")),
            (["seq", "export"], store),
            (["seq", "doctor"], store),
            (["outbox", "publish"], (*outbox, "--create-schema", *event)),
            (["outbox", "list"], outbox),
            (["outbox", "show"], (*outbox, event[-1])),
            (["outbox", "explain"], (*outbox, event[-1])),
            (["outbox", "stats"], outbox),
            (["outbox", "pause"], outbox),
            (["outbox", "resume"], outbox),
            (["outbox", "tail"], (*outbox, "--for", "1s")),
            (["outbox", "export"], outbox),
            (["outbox", "work"], (*outbox, "--exec", "exit 65", "--until-empty")),
            (["outbox", "parked"], outbox),
            (["outbox", "replay"], (*outbox, "--all")),
            (["outbox", "discard"], (*outbox, "--all")),
            (["outbox", "recur", "add"], (*outbox, *nightly)),
            (["outbox", "recur", "list"], outbox),
            (["outbox", "recur", "remove"], (*outbox, "nightly")),
            (["outbox", "fsck"], outbox),
            (["outbox", "doctor"], outbox),
            (["schema", "status"], (self.at,)),
            (["schema", "upgrade"], (self.at,)),
            (["doctor"], (self.at,)),
            (["config", "check"], (self.config,)),
            (["config", "show"], (self.config,)),
            (["config", "reference"], ()),
            (["key", "slot"], ("a",)),
        ]

    def test_every_command_accepts_it(self):
        for path in tree():
            text = self.fine(*path, "--help")
            if "\nCommands:\n" in text or path in WITHOUT_RESULT:
                continue
            with self.subTest(command=path):
                self.assertIn("--json", text)

    def test_every_line_is_an_object(self):
        for path, words in self.commands():
            with self.subTest(command=path):
                done = run(*path, *words, "--json")
                self.assertIn(done.returncode, (0, 1), done.stderr)
                lines = done.stdout.decode().splitlines()
                for line in lines:
                    self.assertIsInstance(json.loads(line), dict)
                if path not in (["outbox", "tail"], ["outbox", "parked"], ["store", "doctor"]):
                    self.assertGreater(len(lines), 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
