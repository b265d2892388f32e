"""Help, version, exit codes, what is said when a command line is wrong, and where the output goes."""

import contextlib
import json
import os
import re
import subprocess
import tempfile
import time
import unittest

from holdfast_process import HOLDFAST, CommandTest, run


def tree():
    """Every command, found by reading --help from the root down."""
    found, todo = [], [[]]
    while todo:
        path = todo.pop()
        found.append(path)
        text = run(*path, "--help").stdout.decode()
        listed = re.search(r"\nCommands:\n((?:  .*\n)+)", text)
        if listed:
            todo += [path + [line.split()[0]] for line in listed[1].splitlines() if not line.startswith("   ")]
    return found


class Help(CommandTest):
    def test_every_command_has_help_with_examples(self):
        commands = tree()
        self.assertIn(["key", "failover"], commands)
        self.assertGreaterEqual(len(commands), 13)
        for path in commands:
            with self.subTest(command=path):
                text = self.fine(*path, "--help")
                self.assertEqual(text, self.fine(*path, "-h"))
                self.assertIn("Usage: " + " ".join(["holdfast", *path]), text)
                self.assertIn("\nExamples:\n", text)
                self.assertIn("--help", text)
                for line in text.splitlines():
                    self.assertEqual(line, line.rstrip())

    def test_examples_work(self):
        """What the help tells to type must be worth typing. Keys only: other groups leave something behind, or take long."""
        for path in tree():
            if path[:1] != ["key"]:
                continue
            text = self.fine(*path, "--help")
            for line in text.split("\nExamples:\n")[1].splitlines():
                if "cases.jsonl" in line:
                    continue
                with self.subTest(example=line):
                    script = f'holdfast() {{ "{HOLDFAST}" "$@"; }}; {line}'
                    done = subprocess.run(["bash", "-o", "pipefail", "-c", script], capture_output=True, timeout=60)
                    self.assertEqual((done.returncode, done.stderr), (0, b""))
                    self.assertNotIn(b'"error"', done.stdout)

    def test_the_word_help(self):
        self.assertEqual(self.fine("help"), self.fine("--help"))
        self.assertEqual(self.fine("help", "store"), self.fine("store", "--help"))
        self.assertEqual(self.fine("help", "store", "get"), self.fine("store", "get", "--help"))
        self.assertEqual(self.fine("store", "help"), self.fine("store", "--help"))
        self.assertIn("'sotre'", self.refused("help", "sotre"))
        self.assertIn("help", self.fine("key", "slot", "help"), "an argument of a command stays one")
        self.assertEqual(self.fine("version"), self.fine("--version"))

    def test_every_command_with_a_url_names_its_variables(self):
        for path in tree():
            text = self.fine(*path, "--help")
            if "--password-file" not in text:
                continue
            with self.subTest(command=path):
                environment = text.split("\nEnvironment:\n")[1].split("\n\n")[0]
                self.assertIn("HOLDFAST_PASSWORD", environment)
                self.assertIn("HOLDFAST_REDIS_PASSWORD", environment)
        for path, name in ((("store", "get"), "HOLDFAST_STORE"), (("seq", "next"), "HOLDFAST_SEQUENCE"), (("outbox", "work"), "HOLDFAST_OUTBOX")):
            self.assertIn(name, self.fine(*path, "--help").split("\nEnvironment:\n")[1])

    def test_variables_are_defaults(self):
        with tempfile.TemporaryDirectory() as directory:
            env = {name: f"sqlite:{directory}/{name}" for name in ("HOLDFAST_STORE", "HOLDFAST_SEQUENCE", "HOLDFAST_OUTBOX")}
            self.fine("store", "put", "--create-schema", "--name", "n", "--key", "k", "--payload", "1", env=env)
            self.fine("seq", "next", "--create-schema", "--name", "ids", env=env)
            self.fine("outbox", "publish", "--create-schema", "--type", "t", "--payload", "{}", env=env)
            self.assertEqual(set(os.listdir(directory)) & env.keys(), env.keys())
            self.assertIn("other.db", self.refused("store", "get", "--store", f"sqlite:{directory}/other.db", "--name", "n", "--key", "k", env=env))
        self.assertIn("--store is missing", self.refused("store", "get", "--name", "n", "--key", "k", env={"HOLDFAST_STORE": ""}))
        line = self.refused("store", "get", "--name", "n", "--key", "k", env={"HOLDFAST_STORE": "nosuch://u:hush@h"})
        self.assertNotIn("hush", line)

    def test_version(self):
        self.assertRegex(self.fine("--version"), r"^holdfast [0-9]+\.[0-9]+\.[0-9]+\n$")


class Mistakes(CommandTest):
    def test_nearest_word(self):
        for words, expected in [
            (["kye"], "'key'"),
            (["key", "fialover"], "'failover'"),
            (["key", "slot", "--jsn", "a"], "'--json'"),
            (["key", "failover", "--nam=x"], "'--name'"),
            (["key", "failover", "--name", "n", "--style", "exac"], "'exact'"),
            (["key", "batch", "--scheme", "interopp"], "'interop'"),
            (["--hlep"], "'--help'"),
            (["bench", "stor"], "'store'"),
        ]:
            with self.subTest(words=words):
                self.assertIn("did you mean " + expected, self.refused(*words))

    def test_option_before_its_command(self):
        self.assertEqual(self.refused("outbox", "recur", "--outbox", "sqlite:a.db", "add"),
                         "holdfast: '--outbox' is an option of 'holdfast outbox recur add'; write it after 'add'\n")
        self.assertIn("write it after 'slot'", self.refused("--log", "text", "key", "slot", "a"))

    def test_no_nearest_word(self):
        self.assertIn("use key", self.refused("frobnicate"))
        self.assertIn("put -- before", self.refused("key", "slot", "-x"))
        self.assertIn("--help", self.refused("key", "outbox", "--" + "x" * 1000))

    def test_every_kind(self):
        for words in [
            [], ["key"], ["bench"], ["completion"], ["key", "slot"], ["demo", "x"], ["completion", "fish"], ["--version=1"], [""], ["\n"],
            ["--"], ["--", "key"], ["key", "--", "slot"], ["-"], ["-x"], ["++"], ["key", "failover", "--name"],
            ["key", "failover", "--name", "a", "--name", "b"], ["key", "slot", "--json=5", "a"], ["key", "failover", "--name", "a", "--style", ""],
            ["bench", "store", "--store", "memory:", "--seconds", "0"], ["bench", "store", "--store", "memory:", "--threads", "x"],
            ["key", "batch"], ["key", "batch", "--scheme", "interop", "a", "b"], ["a\x1b[2Jb\nc"], [b"\xff\xfe"],
        ]:
            with self.subTest(words=words):
                line = self.refused(*words)
                self.assertIsNone(re.search(r"[\x00-\x08\x0b-\x1f\x7f]", line))

    def test_unreadable_files(self):
        self.assertIn("no-such-file", self.refused("key", "batch", "--scheme", "interop", "no-such-file"))
        self.refused("key", "batch", "--scheme", "interop", "/")


class Log(CommandTest):
    def test_errors_as_json(self):
        done = run("store", "get", "--store", "sqlite:/nonexistent/a.db", "--name", "n", "--key", "k", "--log", "json")
        self.assertEqual(done.returncode, 2)
        record = json.loads(done.stderr)
        self.assertEqual(set(record), {"time", "level", "message", "fields"})
        self.assertEqual((record["level"], record["fields"]["code"]), ("error", "not_found"))

    def test_warnings_have_a_level(self):
        with tempfile.TemporaryDirectory() as directory:
            words = ("outbox", "stats", "--outbox", f"sqlite:{directory}/a.db", "--create-schema")
            self.assertIn("holdfast: warning: nothing was ever published", run(*words).stderr.decode())
            self.assertEqual(json.loads(run(*words, "--log", "json").stderr)["level"], "warning")
            self.assertEqual(run(*words, "--log-level", "error").stderr, b"")

    def test_every_command_has_the_options(self):
        for path in tree():
            text = self.fine(*path, "--help")
            if "\nCommands:\n" in text and path != ["serve"]:
                continue
            with self.subTest(command=path):
                self.assertIn("--log text|json", text)
                self.assertIn("--log-level debug|info|warning|error", text)
        self.assertIn("did you mean 'json'?", self.refused("key", "slot", "a", "--log", "jsn"))


class DamagedFiles(CommandTest):
    """Exit code 3 for a database, whatever the command; the line names the file."""

    def test_not_a_database(self):
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "corrupt.db")
            with open(file, "wb") as corrupt:
                corrupt.write(b"no database" * 400)
            url = "sqlite://" + file
            for words in (["store", "get", "--store", url, "--name", "n", "--key", "k"], ["store", "names", "--store", url], ["seq", "list", "--store", url],
                          ["outbox", "stats", "--outbox", url], ["schema", "status", url], ["doctor", url],
                          ["backup", url, os.path.join(directory, "backup")]):
                with self.subTest(words=words):
                    self.assertIn(file, self.refused(*words, code=3))

    def test_not_a_backup(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assertIn("'/etc/passwd' is not a backup", self.refused("restore", f"sqlite:{directory}/a.db", "/etc/passwd", "--create-schema"))


class Output(CommandTest):
    def test_full_disk(self):
        for words in [["--help"], ["--version"], ["key", "slot", "a"], ["demo"], ["completion", "bash"], ["bench", "--help"]]:
            with self.subTest(words=words), open("/dev/full", "wb") as full:
                done = subprocess.run([HOLDFAST, *words], stdout=full, stderr=subprocess.PIPE, timeout=60)
                self.assertIn("No space left", self.assert_complaint(done, 3))

    def test_full_disk_in_the_middle_of_a_batch(self):
        lines = b'{"id":1,"value":{"t":"int","v":"1"}}\n' * 100_000
        with open("/dev/full", "wb") as full:
            done = subprocess.run([HOLDFAST, "key", "batch", "--scheme", "interop-value"], input=lines, stdout=full,
                                  stderr=subprocess.PIPE, timeout=60)
        self.assert_complaint(done, 3)

    def test_closed_output(self):
        done = subprocess.run(["bash", "-c", f'"{HOLDFAST}" key slot a >&-'], stderr=subprocess.PIPE, timeout=60)
        self.assert_complaint(done, 3)

    def test_closed_descriptors_are_taken(self):
        """What is opened later, a socket of a database, must not become standard output."""
        with tempfile.TemporaryDirectory() as directory:
            cases = os.path.join(directory, "cases")
            os.mkfifo(cases)

            def is_cases(descriptor):
                with contextlib.suppress(OSError):  # closed meanwhile
                    return os.readlink(descriptor.path) == cases

            script = f'exec "{HOLDFAST}" key batch --scheme interop-value "{cases}" <&- >&- 2>&-'
            writer = os.open(cases, os.O_RDWR)  # so that neither side waits for the other
            with subprocess.Popen(["bash", "-c", script]) as running:
                try:
                    at = f"/proc/{running.pid}"
                    end = time.monotonic() + 30
                    while time.monotonic() < end and not any(map(is_cases, list(os.scandir(f"{at}/fd")))):
                        time.sleep(0.01)
                    for each, way in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
                        self.assertEqual(os.readlink(f"{at}/fd/{each}"), "/dev/null")
                        with open(f"{at}/fdinfo/{each}") as info:
                            self.assertEqual(int(re.search(r"flags:\s+([0-7]+)", info.read())[1], 8) & os.O_ACCMODE, way)
                finally:
                    os.close(writer)
            self.assertEqual(running.returncode, 0)

    def test_closed_pipe_in_the_middle_of_a_batch(self):
        with tempfile.NamedTemporaryFile() as cases:
            cases.write(b'{"id":1,"value":{"t":"int","v":"1"}}\n' * 300_000)
            cases.flush()
            script = f'"{HOLDFAST}" key batch --scheme interop-value {cases.name} | head -1; echo "${{PIPESTATUS[0]}}"'
            done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60)
        self.assertEqual(done.stderr, b"")
        self.assertEqual(done.stdout, b'{"id":1,"hex":"01"}\n0\n')

    def test_head(self):
        script = f'"{HOLDFAST}" completion bash | head -1; echo "${{PIPESTATUS[0]}}"'
        done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60)
        self.assertEqual(done.stderr, b"")
        self.assertTrue(done.stdout.endswith(b"\n0\n"))

    def test_reader_that_never_reads(self):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([HOLDFAST, "--help"], stdout=write, stderr=subprocess.PIPE, timeout=60)
        os.close(write)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_usage_errors_in_json(self):
        for words in (["store", "gte", "--log", "json"], ["--log=json", "nosuch"], ["store", "list", "--log", "json", "--nosuch"],
                      ["seq", "peek", "--log=json", "--store", ""], ["outbox", "stats", "--log", "json", "--log-level", "loud"]):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            record = json.loads(done.stderr)
            self.assertEqual((record["level"], record["fields"]["code"]), ("error", "invalid_argument"))
        self.assertTrue(run("store", "gte", "--", "--log=json").stderr.startswith(b"holdfast: "))

    def test_locale_does_not_matter(self):
        env = {"LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Kathmandu"}
        self.assertEqual(self.fine("key", "failover", "--name", "n", "--json-args", "1.5", env=env),
                         self.fine("key", "failover", "--name", "n", "--json-args", "1.5"))


if __name__ == "__main__":
    unittest.main()
