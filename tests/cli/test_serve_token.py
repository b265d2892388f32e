"""holdfast serve token: adds, lists and revokes tokens of the server."""

import contextlib
import glob
import hashlib
import http.client
import json
import os
import pty
import re
import stat
import subprocess
import tempfile
import time
import unittest

from holdfast_process import HOLDFAST, CommandTest, run

FORM = re.compile(r"hf_([a-km-z2-9]{8})_[A-Za-z0-9_-]{43}\n")


class Tokens(CommandTest):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = place.name
        self.state = ["--state", f"sqlite://{place.name}/serve.db"]

    def add(self, *words):
        return self.fine("serve", "token", "add", *words, *self.state)

    def tokens(self):
        return [json.loads(line) for line in self.fine("serve", "token", "list", "--json", *self.state).splitlines()]

    def test_a_token_is_printed_once_and_kept_as_a_hash(self):
        text = self.add("--name", "shop")
        self.assertRegex(text, FORM)
        secret = text.strip()
        content = b"".join(open(name, "rb").read() for name in glob.glob(self.folder + "/*"))
        self.assertIn(b"shop", content)
        self.assertIn(hashlib.sha256(secret.encode()).hexdigest().encode(), content)
        self.assertNotIn(secret[12:].encode(), content)
        for words in (["list"], ["list", "--json"]):
            self.assertNotIn(secret[12:], self.fine("serve", "token", *words, *self.state))
        self.assertEqual(stat.S_IMODE(os.stat(self.folder + "/serve.db").st_mode), 0o600)

    def test_what_a_token_may_do(self):
        made = json.loads(self.add("--role", "app", "--scope", "outbox:orders:publish", "--scope", "store:*:read", "--tenant", "acme", "--name", "shop",
                                   "--expires", "30d", "--rate", "100/s", "--json"))
        self.assertRegex(made.pop("token") + "\n", FORM)
        self.assertEqual([made], self.tokens())
        self.assertEqual({name: made[name] for name in ("name", "role", "scopes", "tenant", "rate", "state", "revokedAt", "lastUsedAt")},
                         {"name": "shop", "role": "app", "scopes": ["outbox:orders:publish", "store:*:read"], "tenant": "acme", "rate": "100/s",
                          "state": "active", "revokedAt": None, "lastUsedAt": None})

    def test_the_defaults(self):
        made = json.loads(self.add("--json"))
        self.assertEqual((made["role"], made["scopes"], made["tenant"], made["rate"]), ("app", [], "", ""))
        self.assertEqual(made["name"], "app-" + made["id"])

    def test_the_list_for_people(self):
        self.add("--name", "shop", "--scope", "store:main:read", "--tenant", "acme")
        lines = self.fine("serve", "token", "list", *self.state).splitlines()
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[1], r"^[a-z0-9]{8}  active  app   \d{4}-\d\d-\d\d  never +shop  store:main:read tenant=acme$")

    def test_tokens_are_revoked(self):
        first = self.add("--name", "first").strip()
        self.add("--name", "second")
        third = self.add("--name", "third").strip()
        self.fine("serve", "token", "revoke", first[3:11], *self.state)
        self.fine("serve", "token", "revoke", "second", *self.state)
        self.fine("serve", "token", "revoke", third, *self.state)
        self.assertEqual({token["state"] for token in self.tokens()}, {"revoked"})
        done = run("serve", "token", "revoke", "second", *self.state)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"no such token", done.stderr)
        self.add("--name", "second")

    def test_what_is_refused(self):
        for words, part in ((["--role", "root"], "root"), (["--name", "a b"], "name"), (["--scope", "a b"], "scope"),
                            (["--scope", "nonsense"], "'nonsense'; use store:NAME:read, "), (["--scope", "store:main:publish"], "outbox:NAME:publish"),
                            (["--scope", "store::read"], "scope"), (["--expires", "0s"], "expires"),
                            (["--expires", "20000d"], "10 years"), (["--rate", "5"], "rate"), (["--role", "admin", "--tenant", "a"], "tenant"),
                            (["--role", "viewer", "--scope", "a:b"], "scopes"), (["--tenant", "a\nb"], "tenant")):
            with self.subTest(words):
                self.assertIn(part, self.refused("serve", "token", "add", *words, *self.state))
        self.add("--name", "shop")
        self.assertIn("choose another name", self.refused("serve", "token", "add", "--name", "shop", *self.state))

    def test_every_scope_that_can_grant_something(self):
        for scope in ("*:*:*", "*:main:read", "point:p:*", "outbox:o:act", "outbox:o:work", "sequence:*:next", "key:make"):
            self.assertEqual(json.loads(self.add("--scope", scope, "--json"))["scopes"], [scope])

    def test_the_state_of_a_file(self):
        with open(self.folder + "/serve.toml", "w") as file:
            file.write(f'[serve]\nstate = "sqlite://{self.folder}/own.db"\n[stores.main]\nurl = "${{NOT_SET}}"\n')
        config = ["--config", self.folder + "/serve.toml"]
        self.fine("serve", "token", "add", "--name", "shop", *config)
        self.assertIn("shop", self.fine("serve", "token", "list", "--state", f"sqlite://{self.folder}/own.db"))
        self.assertIn("shop", self.fine("serve", "token", "list", *config))
        self.fine("serve", "token", "revoke", "shop", *config)
        self.assertIn("not both", self.refused("serve", "token", "list", *config, *self.state))
        with open(self.folder + "/serve.toml", "w") as file:
            file.write("[serve]\nsate = 'sqlite:x.db'\n")
        self.assertIn("line 2: serve.sate: there is no such key", self.refused("serve", "token", "add", *config))

    def test_a_state_that_is_not_there(self):
        for words in (["list"], ["revoke", "x"]):
            self.assertIn("token add", self.refused("serve", "token", *words, *self.state))
        self.assertFalse(os.path.exists(self.folder + "/serve.db"))
        self.assertIn("SQL", self.refused("serve", "token", "add", "--state", "memory:"))

    def test_the_default_state(self):
        environment = {"HOME": self.folder, "STATE_DIRECTORY": ""}
        self.fine("serve", "token", "add", env=environment)
        path = self.folder + "/.local/state/holdfast/serve.db"
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode), 0o700)
        os.mkdir(self.folder + "/service")
        self.fine("serve", "token", "add", env={**environment, "STATE_DIRECTORY": self.folder + "/service"})
        self.assertTrue(os.path.exists(self.folder + "/service/serve.db"))
        self.assertIn("--state", self.refused("serve", "token", "list", env={"HOME": "", "STATE_DIRECTORY": ""}))

    def test_a_state_that_others_may_change(self):
        self.add()
        os.chmod(self.folder + "/serve.db", 0o666)
        self.assertIn("chmod 600", self.refused("serve", "token", "list", *self.state, code=3))

    def test_a_state_that_is_damaged(self):
        with open(self.folder + "/serve.db", "wb") as file:
            file.write(b"x" * 8192)
        os.chmod(self.folder + "/serve.db", 0o600)
        done = run("serve", "token", "list", *self.state)
        self.assertIn(done.returncode, (2, 3))
        self.assertEqual(done.stderr.count(b"\n"), 1)


class Server(CommandTest):
    """Tokens of a server that runs."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = place.name
        self.environment = {**os.environ, "STATE_DIRECTORY": place.name}
        with open(place.name + "/serve.toml", "w") as file:
            file.write('[stores.main]\nurl = "memory:"\n')
        self.log = open(place.name + "/log", "wb+")
        self.addCleanup(self.log.close)

    def start(self, errors, *words):
        """Runs the server until the end of the test."""
        process = subprocess.Popen([HOLDFAST, "serve", "--config", self.folder + "/serve.toml", "--listen", "127.0.0.1:0", "--drain", "0s", *words],
                                   stdout=self.log, stderr=errors, env=self.environment)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def until(self, condition):
        end = time.monotonic() + 60
        while not (result := condition()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        return result

    def errors(self):
        with open(self.folder + "/errors") as file:
            return file.read()

    def status(self, port, token):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", "/v1/session", headers={"Authorization": "Bearer " + token} if token else {})
            return connection.getresponse().status

    def start_on_a_terminal(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        process = self.start(theirs)
        os.close(theirs)
        text = ""
        while "holdfast: ready" not in text:
            text += os.read(ours, 65536).decode()
        return process, text, int(re.search(r"listening on http://127.0.0.1:(\d+)", text)[1])

    def test_the_first_start_shows_a_token_on_a_terminal_once(self):
        process, text, port = self.start_on_a_terminal()
        token = re.search(r"hf_\S{52}", text)[0]
        self.assertEqual(self.status(port, token), 200)
        self.assertEqual(self.status(port, ""), 401)
        process.terminate()
        self.assertEqual(process.wait(60), 0)
        process, text, port = self.start_on_a_terminal()
        self.assertNotIn("hf_", text)
        self.assertEqual(self.status(port, token), 200)
        process.terminate()
        self.assertEqual(process.wait(60), 0)
        content = b"".join(open(name, "rb").read() for name in glob.glob(self.folder + "/*"))
        self.assertIn(b"first-start", content)
        self.assertNotIn(token[12:].encode(), content)

    def test_the_advice_names_the_file_that_has_the_state(self):
        with open(self.folder + "/serve.toml", "a") as file:
            file.write(f'[serve]\nstate = "sqlite://{self.folder}/own.db"\n')
        with open(self.folder + "/errors", "wb+") as errors:
            self.start(errors)
            self.until(lambda: "holdfast: ready" in self.errors())
        command = re.search(r"run: holdfast (serve token add .*)", self.errors())[1]
        self.assertEqual(command, f"serve token add --config {self.folder}/serve.toml --role admin")
        token = self.fine(*command.split()).strip()
        port = int(re.search(r"listening on http://127.0.0.1:(\d+)", self.errors())[1])
        self.until(lambda: self.status(port, token) == 200)

    def test_without_a_terminal_there_is_advice_and_no_token(self):
        with open(self.folder + "/errors", "wb+") as errors:
            self.start(errors)
            self.until(lambda: "holdfast: ready" in self.errors())
        text = self.errors()
        # The shell of an administrator has no STATE_DIRECTORY.
        self.assertIn(f"holdfast serve token add --state sqlite://{self.folder}/serve.db --role admin", text)
        self.assertNotIn("hf_", text)
        port = int(re.search(r"listening on http://127.0.0.1:(\d+)", text)[1])
        self.assertEqual(self.status(port, ""), 401)
        # The server sees what the commands change.
        token = self.fine("serve", "token", "add", "--role", "viewer", env=self.environment).strip()
        self.until(lambda: self.status(port, token) == 200)
        self.fine("serve", "token", "revoke", token[3:11], env=self.environment)
        self.until(lambda: self.status(port, token) == 401)
        self.log.flush()
        with open(self.folder + "/log") as file:
            self.assertNotIn(token[12:], file.read() + self.errors())


if __name__ == "__main__":
    unittest.main()
