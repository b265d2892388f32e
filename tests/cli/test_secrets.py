"""A whole run with planted secrets: none of them may be in what is printed, in process lists, in what programs inherit, or in files.

Passwords have to stay in the memory of a process that may have to connect again; keys as text do not."""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from holdfast_process import HOLDFAST, CommandTest


def plant(kind):
    return f"Planted-{kind}-{secrets.token_hex(12)}"


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def memory_of(pid):
    """All that a core dump of a stopped process would have."""
    parts = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            addresses, rights = line.split()[:2]
            if not rights.startswith("rw"):
                continue
            begin, end = (int(each, 16) for each in addresses.split("-"))
            with contextlib.suppress(OSError):
                memory.seek(begin)
                parts.append(memory.read(end - begin))
    return b"".join(parts)


class Secrets(CommandTest):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.planted = {}
        self.printed = b""

    def path(self, name):
        return os.path.join(self.directory, name)

    def secret(self, kind):
        return self.planted.setdefault(kind, plant(kind))

    def private_file(self, name, text):
        with open(os.open(self.path(name), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        return self.path(name)

    def assert_clean(self, data, place):
        if isinstance(data, str):
            data = data.encode()
        for kind, secret in self.planted.items():
            self.assertNotIn(secret.encode(), data, f"{kind} is in {place}")

    def start_redis(self, password):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        configuration = self.private_file("redis.conf", f"bind 127.0.0.1\nport {port}\nsave \"\"\ndir {self.directory}\nrequirepass {password}\n")
        server = subprocess.Popen(["redis-server", configuration], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        end = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return port
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def start(self, *words, env=None):
        process = subprocess.Popen([HOLDFAST, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **(env or {})})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def finish(self, process):
        out, err = process.communicate(timeout=60)
        self.printed += out + err
        return process.returncode, out

    def run_it(self, *words, code=0, env=None):
        returned, out = self.finish(self.start(*words, env=env))
        self.assertEqual(returned, code, self.printed[-2000:])
        return out.decode()

    def assert_hidden_in_lists(self, pid, *visible):
        # Only between the start of the process and its first lines is the password to be seen.
        end = time.monotonic() + 20
        while True:
            # Empty while the program is being loaded.
            arguments = read_bytes(f"/proc/{pid}/cmdline")
            if (arguments and b"Planted" not in arguments) or time.monotonic() > end:
                break
            time.sleep(0.01)
        self.assertIn(b"holdfast", arguments, "it must still run")
        self.assert_clean(arguments, "/proc/pid/cmdline")
        listed = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, check=True).stdout
        everything = subprocess.run(["ps", "axww"], capture_output=True, check=True).stdout
        self.assert_clean(listed, "ps")
        self.assert_clean(everything, "ps axww")
        for word in visible:
            self.assertIn(word.encode(), listed, "the rest is still there for administrators")

    def test_a_whole_run(self):
        password = self.secret("redis")
        port = self.start_redis(password)
        in_url = ["--outbox", f"redis://:{password}@127.0.0.1:{port}", "--allow-unsafe"]
        in_file = ["--outbox", f"redis://127.0.0.1:{port}", "--allow-unsafe", "--password-file", self.private_file("password", password + "\n")]
        in_variable = ["--outbox", f"redis://127.0.0.1:{port}", "--allow-unsafe"]
        variable = {"HOLDFAST_REDIS_PASSWORD": password}

        id = self.run_it("outbox", "publish", *in_url, "--type", "t", "--payload", "{}").strip()
        self.run_it("outbox", "publish", *in_file, "--type", "t", "--payload", "{}")
        self.run_it("outbox", "publish", *in_variable, "--type", "t", "--payload", "{}", env=variable)
        for words in (["list"], ["stats"], ["show", id], ["explain", id], ["fsck"]):
            self.run_it("outbox", words[0], *in_file, *words[1:])
        self.run_it("seq", "next", "--store", f"redis://127.0.0.1:{port}", "--name", "n", "--fence", "none", "--allow-unsafe", "--password-file",
                    self.path("password"))
        for words in (["redis", "doctor", f"redis://:{password}@127.0.0.1:{port}"],
                      ["redis", "doctor", f"redis://127.0.0.1:{port}", "--password-file", self.path("password")]):
            process = self.start(*words)
            self.assertIn(self.finish(process)[0], (0, 1))

        # A worker that stays: what others see of it, and what its programs inherit.
        script = "tr '\\0' '\\n' < /proc/self/environ; tr '\\0' ' ' < /proc/$PPID/cmdline; ps axww"
        for words, env in ((in_url, {}), (in_file, {}), (in_variable, variable)):
            before = len(os.listdir(self.directory))
            seen = self.path(f"seen{before}")
            worker = self.start("outbox", "work", *words, "--exec", f"({script}) > {seen}.part; mv {seen}.part {seen}", env=env)
            self.assert_hidden_in_lists(worker.pid, "outbox", "work", f"127.0.0.1:{port}")
            self.run_it("outbox", "publish", *in_file, "--type", "t", "--payload", "{}")
            end = time.monotonic() + 30
            while not os.path.exists(seen):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)
            self.assert_clean(read_bytes(seen), "what a program inherits")
            worker.send_signal(signal.SIGTERM)
            self.assertEqual(self.finish(worker)[0], 0)

        # What goes wrong, too: wrong passwords, in each place.
        wrong = self.secret("wrong")
        self.private_file("wrong", wrong + "\n")
        self.run_it("outbox", "stats", "--outbox", f"redis://:{wrong}@127.0.0.1:{port}", code=3)
        self.run_it("outbox", "stats", "--outbox", f"redis://127.0.0.1:{port}", "--password-file", self.path("wrong"), code=3)
        self.run_it("outbox", "stats", "--outbox", f"redis://127.0.0.1:{port}", code=3, env={"HOLDFAST_REDIS_PASSWORD": wrong})
        for url in (f"postgresql://app:{wrong}@127.0.0.1:1/app", f"mysql://app:{wrong}@127.0.0.1:1/app", f"h2://app:{wrong}@127.0.0.1:1/app",
                    f"odbc:Driver=nothing;PWD={wrong};Server=127.0.0.1", f"postgresql://127.0.0.1:1/app?password={wrong}"):
            process = self.start("store", "list", "--store", url, "--name", "n")
            self.finish(process)
            self.assertNotEqual(process.returncode, 0)

        self.assert_clean(self.printed, "what was printed")
        for name in os.listdir(self.directory):
            if name not in ("redis.conf", "password", "wrong"):
                self.assert_clean(read_bytes(self.path(name)), name)

    def test_passwords_are_overwritten_in_the_arguments(self):
        secret = self.secret("argument")
        # It waits for its payload, so that there is time to look at it.
        pipe = self.path("payload")
        os.mkfifo(pipe)
        for url in (f"postgresql://app:{secret}@127.0.0.1:1/app", f"mysql://app:{secret}@127.0.0.1:1/app", f"redis://:{secret}@127.0.0.1:1",
                    f"postgresql://app:{secret}/@127.0.0.1:1/app", f"postgresql://app:a@{secret}@127.0.0.1:1/app",
                    f"postgresql://app@127.0.0.1:1/app?password={secret}", f"postgresql://127.0.0.1:1/app?%70%61ssword={secret}",
                    f"redis://{secret}@127.0.0.1:1", f"odbc:Driver=none;Server=h;pwd = {{{secret}}}}};}};UID=x",
                    f"odbc:Driver=none;PASSWORD={secret}"):
            for words in (["--outbox", url], [f"--outbox={url}"]):
                with self.subTest(words=words):
                    process = self.start("outbox", "publish", *words, "--type", "t", "--payload-file", pipe)
                    self.assert_hidden_in_lists(process.pid, "publish", pipe)
                    process.kill()
                    self.finish(process)
        self.assert_clean(self.printed, "what was printed")

    def test_arguments_are_not_repeated_with_their_secrets(self):
        secret = self.secret("argument")
        for url in (f"mysql://u:{secret}@127.0.0.1:1/db", f"postgresql://127.0.0.1:1/db?password={secret}", f"redis://:{secret}@127.0.0.1:1/0",
                    f"postgresql://127.0.0.1:1/db?%70assword={secret}", f"redis://{secret}@127.0.0.1:1", f"redis://u:a@{secret}@127.0.0.1:1",
                    f"odbc:Driver=none;PWD={secret}", f"http://u:{secret}@127.0.0.1:1/x"):
            for words in (["store", "get", url], ["store", url], [url], ["demo", url], ["store", "get", "--stroe", url], ["store", "get", f"--stroe={url}"],
                          ["redis", "doctor", url], ["outbox", "work", "--outbox", "memory:", "--http", url], ["bench", "store", "--seconds", url],
                          ["store", "list", "--store", url, "--name", "n"], ["seq", "next", "--store", "memory:", "--name", "n", "--start", url],
                          ["key", "batch", "--scheme", url], ["key", "batch", f"--scheme={url}"], ["key", "failover", "--name", "n", "--json-args", url],
                          ["store", "put", "--store", "memory:", "--name", "n", "--key", "k", "--expire", url], ["outbox", "publish", "--outbox", "memory:", "--type", "t", "--header", url]):
                with self.subTest(words=words):
                    self.printed = b""
                    code, _ = self.finish(self.start(*words))
                    self.assertNotEqual(code, 0)
                    self.assert_clean(self.printed, "what was printed")
        key = "".join(secrets.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(42)) + "A="
        self.planted = {"key": key, "hex": secrets.token_hex(32)}
        for word in (key, "main:" + key, f"b:{key},a:{key}", self.planted["hex"]):
            for words in (["--key-variable", word], [word]):
                self.run_it("store", "rekey", "--store", "sqlite:nowhere.db", *words, code=2)
        self.assert_clean(self.printed, "what was printed")

    def test_variables_of_any_spelling_are_not_inherited(self):
        variables = {name: self.secret(name) for name in ("HOLDFASTX", "holdfast_password", "Holdfast_Keys", "HOLDFAST_PASSWORD")}
        outbox = ["--outbox", f"sqlite://{self.path('o.db')}"]
        self.run_it("outbox", "publish", *outbox, "--create-schema", "--type", "t", "--payload", "{}")
        self.run_it("outbox", "work", *outbox, "--until-empty", "--exec", f"env > {self.path('seen')}", env={**variables, "OTHER": "inherited"})
        seen = read_bytes(self.path("seen"))
        self.assert_clean(seen, "what a program inherits")
        self.assertIn(b"OTHER=inherited", seen)
        self.assertIn(b"HOLDFAST_EVENT_ID=", seen)

    def stopped_at_work(self, words, file):
        """The command, stopped after it began to write to the database and before it ended."""
        original = read_bytes(file)
        for _ in range(20):
            process = self.start(*words)
            while process.poll() is None and not (os.path.exists(file + "-wal") and os.path.getsize(file + "-wal") > 0):
                time.sleep(0.001)
            if process.poll() is None:
                os.kill(process.pid, signal.SIGSTOP)
            if process.poll() is None:
                return process
            # It was done before it was looked at.
            self.assertEqual(self.finish(process)[0], 0, self.printed[-2000:])
            with open(file, "wb") as again:
                again.write(original)
        self.fail("it was never seen at work")

    def test_a_key_as_text_is_not_in_memory(self):
        key = "".join(secrets.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(42)) + "A="
        self.planted["key"] = key
        file = self.path("answers.db")
        lines = [json.dumps({"name": "country", "key": f"k{i:06}", "as_of": "2024-01-01T00:00:00.000000Z",
                             "expire_on": "2999-01-01T00:00:00.000000Z", "payload": "x" * 200, "payload_class": "app.Country"}) for i in range(20_000)]
        done = subprocess.run([HOLDFAST, "store", "import", "--store", f"sqlite://{file}", "--create-schema"], input="\n".join(lines).encode(),
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        ring = self.private_file("keys", f"main:{key}\n")
        rekey = ["store", "rekey", "--store", f"sqlite://{file}", "--key-file", ring, "--allow-plaintext"]
        process = self.stopped_at_work(rekey, file)
        memory = memory_of(process.pid)
        os.kill(process.pid, signal.SIGCONT)
        self.assertIn(b"answers.db", memory, "that is its memory")
        self.assert_clean(memory, "the memory of the process")
        self.assertEqual(self.finish(process)[0], 0)
        self.assert_clean(self.printed, "what was printed")
        self.assert_clean(read_bytes(file), "the database")


if __name__ == "__main__":
    unittest.main()
