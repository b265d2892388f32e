"""holdfast seq, on SQLite files."""

import json
import os
import signal
import subprocess
import tempfile
import unittest

from holdfast_process import HOLDFAST, CommandTest, run


class Sequence(CommandTest):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.file = os.path.join(place.name, "ids.db")
        self.url = "sqlite://" + self.file

    def seq(self, name, *words, sequence="account.id"):
        return ["seq", name, "--store", self.url, *([] if sequence is None else ["--name", sequence]), *words]

    def draw(self, *words, **more):
        return [int(line) for line in self.fine(*self.seq("next", "--create-schema", *words, **more)).splitlines()]

    def test_ids_are_drawn_from_blocks_of_twenty(self):
        self.assertEqual(self.draw(), [1])
        self.assertEqual(self.draw("--count", "25"), list(range(21, 46)))
        self.assertEqual(self.fine(*self.seq("peek")), "60\n")

    def test_the_size_of_blocks(self):
        self.assertEqual(self.draw("--block", "1", "--count", "3"), [1, 2, 3])
        self.assertEqual(self.draw("--block", "1"), [4])
        self.assertEqual(self.draw("--give-back"), [5])
        self.assertEqual(self.draw("--policy", "adaptive", "--block", "1000", "--count", "100", "--give-back"), list(range(6, 106)))

    def test_the_shape_of_ids(self):
        shape = ["--start", "-10", "--increment", "5", "--max", "0", "--block", "3"]
        self.assertEqual(self.draw(*shape, "--count", "3"), [-10, -5, 0])
        self.assertIn("exhausted", self.refused(*self.seq("next", *shape)))
        self.assertEqual(self.fine(*self.seq("peek", *shape[:-2])), "0\n")
        self.assertIn("cycle=no", self.refused(*self.seq("next", *shape, "--cycle")))
        self.fine(*self.seq("define", *shape[:-2], "--cycle", "--replace"))
        self.assertEqual(self.draw(*shape, "--cycle"), [-10])
        self.assertEqual(self.draw("--max", "3", "--count", "3", sequence="few"), [1, 2, 3])
        self.assertEqual(self.draw("--min", "-1", "--increment", "-1", "--count", "3", sequence="fewer"), [1, 0, -1])
        down = ["--increment", "-1", "--block", "1"]
        self.assertEqual(self.draw(*down, "--start", "-1", "--count", "2", sequence="down"), [-1, -2])

    def test_each_id_is_written_when_it_is_drawn(self):
        words = [HOLDFAST, *self.seq("next", "--create-schema", "--count", "0")]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            self.assertEqual(process.stdout.readline(), b"1\n")
            process.send_signal(signal.SIGKILL)
            process.communicate()
        self.assertGreater(self.draw()[0], 20, "a killed process loses what it had leased, and nobody gets it")

    def test_the_reader_may_go_away(self):
        done = subprocess.run(f"{HOLDFAST} {' '.join(self.seq('next', '--create-schema', '--count', '0'))} | head -2; echo ${{PIPESTATUS[0]}}",
                              shell=True, executable="/bin/bash", capture_output=True, timeout=60)
        self.assertEqual((done.stdout, done.stderr), (b"1\n2\n0\n", b""))

    def test_two_processes_at_the_same_time(self):
        self.draw()
        words = [HOLDFAST, *self.seq("next", "--count", "300", "--block", "7")]
        both = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(2)]
        ids = [[int(line) for line in each.communicate(timeout=60)[0].splitlines()] for each in both]
        for one in ids:
            self.assertEqual(one, sorted(one))
        self.assertEqual(len(set(ids[0] + ids[1])), 600)

    def test_peek_of_nothing(self):
        self.draw(sequence="other")
        done = run(*self.seq("peek"))
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertRegex(done.stderr.decode(), r"^holdfast: warning: no id of \S+ was allocated yet\n$")
        self.assertEqual(run(*self.seq("peek", "--json")).stdout, b'{"last":null}\n')

    def test_list(self):
        for name in ["b", "a"]:
            self.draw(sequence=name)
        lines = self.fine(*self.seq("list", sequence=None)).splitlines()
        self.assertEqual([line.split() for line in lines], [["last", "epoch", "name"], ["20", "1", "a"], ["20", "1", "b"]])
        lines = self.fine(*self.seq("list", "--json", "--limit", "1", sequence=None)).splitlines()
        self.assertEqual([json.loads(line) for line in lines], [{"name": "a", "last": 20, "epoch": 1}])

    def test_ensure(self):
        self.draw()
        self.assertEqual(self.fine(*self.seq("ensure", "--id", "1000")), "1000\n")
        self.assertEqual(self.fine(*self.seq("ensure", "--id", "10")), "1000\n")
        self.assertEqual(self.draw(), [1001])

    def test_reset_needs_to_know_what_it_resets(self):
        self.draw()
        done = run(*self.seq("reset", "--last", "19", "--epoch", "1", "--next", "1"))
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn("not reset", done.stderr.decode())
        self.assertEqual(self.fine(*self.seq("reset", "--last", "20", "--epoch", "1", "--next", "5")), "")
        self.assertEqual(self.draw(), [5])
        self.assertIn("--last", self.refused(*self.seq("reset", "--next", "1")))

    def test_schema(self):
        for dialect in ["sqlite", "postgresql", "mysql", "mariadb", "h2", "sqlserver", "oracle"]:
            text = self.fine("seq", "schema", "--dialect", dialect, "--prefix", "APP_")
            self.assertIn("APP_SEQUENCES", text)
            self.assertTrue(text.endswith(";\n"))
        self.refused("seq", "schema", "--dialect", "dbase")

    def test_doctor(self):
        self.draw()
        self.assertIn("fit", self.fine(*self.seq("doctor", sequence=None)))
        self.url += "?synchronous=off"
        done = run(*self.seq("doctor", "--json", sequence=None))
        self.assertEqual(done.returncode, 1)
        report = json.loads(done.stdout)
        self.assertFalse(report["fit"])
        self.assertIn("synchronous", report["reasons"][0])
        self.assertIn("synchronous", self.refused(*self.seq("next")))

    def test_doctor_reports_a_missing_table(self):
        self.draw(sequence="first")
        done = run(*self.seq("doctor", "--prefix", "OTHER_", sequence=None))
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no table OTHER_SEQUENCES", done.stdout.decode())
        self.assertIn("holdfast seq schema --dialect sqlite", done.stdout.decode())
        self.assertIn("holdfast seq schema", self.refused(*self.seq("next", "--prefix", "OTHER_"), code=3))

    def test_definition(self):
        self.assertEqual(self.draw("--start", "5", "--increment", "10", "--block", "2"), [5])
        self.assertEqual(self.draw("--block", "2"), [25], "what is not said is taken from the definition")
        self.assertIn("start=5 increment=10", self.refused(*self.seq("next", "--increment", "3")))
        self.assertIn("start=5 increment=10 ", self.fine(*self.seq("define")))
        self.assertIn("increment=3 ", self.fine(*self.seq("define", "--start", "5", "--increment", "3", "--replace")))
        later = self.draw("--block", "1")
        self.assertGreater(later[0], 35)
        self.assertEqual(run(*self.seq("define", sequence="unknown")).returncode, 1)

    def test_mistakes(self):
        self.refused("seq")
        self.refused("seq", "next", "--name", "n")
        self.assertIn("mistyped.db", self.refused("seq", "next", "--store", "sqlite:mistyped.db", "--name", "n"))
        self.assertFalse(os.path.exists("mistyped.db"))
        self.assertIn("1 to 128", self.refused(*self.seq("next", "--create-schema", sequence="with space")))
        self.assertIn("--start", self.refused(*self.seq("next", "--create-schema", "--start", "one")))
        self.refused(*self.seq("next", "--create-schema", "--block", "0"))
        self.refused(*self.seq("next", "--create-schema", "--increment", "0"))
        self.refused(*self.seq("next", "--create-schema", "--policy", "huge"))
        self.assertIn("--id", self.refused(*self.seq("ensure")))

    def test_on_redis_a_fence_must_be_chosen(self):
        redis = ["seq", "next", "--name", "n", "--store", "redis://127.0.0.1:1"]
        self.assertIn("--fence super", self.refused(*redis))
        self.assertIn("--super-store", self.refused(*redis, "--fence", "super"))
        self.assertIn("--super-store", self.refused(*redis, "--fence", "none", "--super-store", self.url))
        # At once: the time is for blocks, not for a server that is not there.
        self.assertIn("127.0.0.1:1", self.refused(*redis, "--fence", "none", "--wait", "10m", code=3))
        self.assertIn("127.0.0.1:1", self.refused("seq", "next", "--name", "n", "--wait", "10m", "--store", "postgresql://127.0.0.1:1/d", code=3))
        self.assertIn("only for Redis", self.refused(*self.seq("next", "--create-schema", "--fence", "none")))


if __name__ == "__main__":
    unittest.main()
