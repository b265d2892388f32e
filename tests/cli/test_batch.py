"""holdfast key batch: JSON Lines in, JSON Lines out, whatever comes in."""

import hashlib
import json
import os
import subprocess
import tempfile
import unittest
import uuid

from holdfast_process import HOLDFAST, CommandTest, on_a_terminal

GOOD = {"id": "good", "namespace": "users", "operation": "get", "args": [{"t": "int", "v": "42"}]}
GOOD_LINE = json.dumps(GOOD).encode()


class Batch(CommandTest):
    def batch(self, stdin, *words):
        words = words or ("--scheme", "interop")
        text = self.fine("key", "batch", *words, stdin=stdin)
        self.assertTrue(text == "" or text.endswith("\n"))
        return [json.loads(line) for line in text.splitlines()]

    def assert_good(self, answer):
        packed = bytes.fromhex("912a")
        digest = hashlib.blake2b(packed, digest_size=32).hexdigest()
        self.assertEqual(answer, {"id": "good", "key": f"users:get:{digest}", "args_hash": digest, "canonical_hex": "912a"})

    def assert_bad(self, answer, code=None):
        self.assertEqual(set(answer), {"id", "error"})
        self.assertEqual(set(answer["error"]), {"code", "path", "message"})
        if code:
            self.assertEqual(answer["error"]["code"], code)

    def test_schemes(self):
        text = {"t": "str", "v": "FR"}
        case = {"id": 1, "name": "n", "domain": "country", "args": [text], "namespace": "x", "module": "m", "qualname": "f",
                "kwargs": [["a", text]], "operation": "op", "value": text}
        line = json.dumps(case)
        key = str(uuid.UUID(bytes=hashlib.md5(b"country:FR").digest(), version=3))
        self.assertEqual(self.batch(line, "--scheme", "failover"), [{"id": 1, "raw_key": "FR", "uuid": key}])
        [auto] = self.batch(line, "--scheme", "cachekit-auto")
        self.assertEqual(set(auto), {"id", "key", "args_hash", "msgpack_hex"})
        self.assertEqual(auto["msgpack_hex"], "9291a24652" + "81a161a24652")
        [interop] = self.batch(line, "--scheme", "interop")
        self.assertEqual(set(interop), {"id", "key", "args_hash", "canonical_hex"})
        self.assertEqual(self.batch(line, "--scheme", "interop-value"), [{"id": 1, "hex": "a24652"}])

    def test_styles_and_dialects(self):
        case = json.dumps({"id": 1, "name": "n", "args": [{"t": "str", "v": "a:b"}]})
        self.assertEqual(self.batch(case, "--scheme", "failover")[0]["raw_key"], "a\\:b")
        self.assertEqual(self.batch(case, "--scheme", "failover", "--style", "exact")[0]["raw_key"], "a:b")
        case = json.dumps({"id": 1, "namespace": "n", "module": "m", "qualname": "f<g>", "args": [], "serializer": "other"})
        keys = {self.batch(case, "--scheme", "cachekit-auto", "--dialect", each)[0]["key"] for each in ["current", "py_0_17", "v1_0"]}
        self.assertEqual(len(keys), 3)
        former, present = (self.batch(case, "--scheme", "cachekit-auto", "--dialect", each) for each in ["seed", "v1_0"])
        self.assertEqual(former, present)

    def test_same_keys_as_the_single_commands(self):
        single = self.fine_json("key", "interop", "users", "get", "--json", "--json-args", "42")
        [answer] = self.batch(GOOD_LINE)
        self.assertEqual(answer, {"id": "good", **single})

    def test_line_ends(self):
        for stdin in [GOOD_LINE, GOOD_LINE + b"\n", GOOD_LINE + b"\r\n", b"\xef\xbb\xbf" + GOOD_LINE + b"\n"]:
            with self.subTest(stdin=stdin):
                [answer] = self.batch(stdin)
                self.assert_good(answer)
        for answer in self.batch((GOOD_LINE + b"\r\n") * 3 + GOOD_LINE):
            self.assert_good(answer)

    def test_nothing(self):
        self.assertEqual(self.batch(b""), [])

    def test_blank_lines_are_bad_cases(self):
        answers = self.batch(b"\n" + GOOD_LINE + b"\n  \r\n\n")
        self.assertEqual(len(answers), 4)
        self.assert_good(answers[1])
        for each in (0, 2, 3):
            self.assert_bad(answers[each], "malformed")

    def test_a_bad_case_does_not_stop_the_stream(self):
        bad = [
            b"{", b"[]", b"42", b"null", b'"x"', b"{}", b'{"id":1}', b"\xff\xfe", b"\x00", b'{"id":"\xff"}', GOOD_LINE + GOOD_LINE,
            GOOD_LINE[:-1], b'{"id":1,"namespace":"users","operation":"get","args":[{"t":"str","v":"\xed\xa0\x80"}]}',
            b'{"id":1,"namespace":"users","operation":"get","args":[{"t":"str","wtf8":"eda080"}]}',
            b'{"id":1,"namespace":"Users","operation":"get","args":[]}', b'{"id":1,"namespace":"users","operation":"get","args":42}',
            b'{"id":1,"namespace":"users","operation":"get","args":[{"t":"nothing"}]}', b"x" * 10_000,
        ]
        answers = self.batch(b"\n".join(line + b"\n" + GOOD_LINE for line in bad) + b"\n")
        self.assertEqual(len(answers), 2 * len(bad))
        for answer in answers[1::2]:
            self.assert_good(answer)
        for line, answer in zip(bad, answers[::2]):
            with self.subTest(line=line):
                self.assert_bad(answer)

    def test_id_and_path_of_an_error(self):
        case = {"id": {"a": [1]}, "namespace": "users", "operation": "get",
                "args": [{"t": "none"}, {"t": "list", "v": [{"t": "int", "v": "18446744073709551616"}]}]}
        [answer] = self.batch(json.dumps(case))
        self.assert_bad(answer, "out_of_range")
        self.assertEqual(answer["id"], {"a": [1]})
        self.assertEqual(answer["error"]["path"], "args[1][0]")

    def test_messages_are_cut_between_characters(self):
        lines = []
        for length in range(64):
            type = "x" * length + "\u00e9\u20ac\U0001f600" * 30
            for value in ({"t": type, "v": 1}, {"t": "array", "dtype": type, "shape": [1], "le": "00"}):
                case = {"id": 1, "name": "n", "namespace": "n", "operation": "o", "module": "m", "qualname": "q", "args": [value], "value": value}
                lines.append(json.dumps(case).encode() + b"\n")
        for scheme in ("failover", "interop", "interop-value", "cachekit-auto"):
            done = subprocess.run([HOLDFAST, "key", "batch", "--scheme", scheme], input=b"".join(lines), capture_output=True, timeout=60)
            answers = done.stdout.splitlines()
            self.assertEqual(len(answers), len(lines))
            for answer in answers:
                self.assert_bad(json.loads(answer.decode("utf-8", "strict")))

    def test_a_key_cannot_drive_a_terminal(self):
        text = "a\u009bC\u202eD\u2066E\x7fF\u2028G"
        with tempfile.NamedTemporaryFile() as cases:
            cases.write(json.dumps({"id": text, "name": "n", "args": [{"t": "str", "v": text}]}, ensure_ascii=False).encode() + b"\n")
            cases.flush()
            words = ["key", "batch", "--scheme", "failover", "--style", "exact", cases.name]
            shown, code = on_a_terminal(*words, env=dict(os.environ))
            self.assertEqual(code, 0)
            for c in "\u009b\u202e\u2066\x7f\u2028":
                self.assertNotIn(c.encode(), shown)
            # A file or a program gets the same document.
            self.assertEqual(json.loads(shown), json.loads(self.fine(*words)))
            self.assertEqual(json.loads(shown)["raw_key"], text)

    def test_a_million_nested_lists(self):
        depth = 1_000_000
        typed = b'{"id":1,"namespace":"users","operation":"get","args":[' + b'{"t":"list","v":[' * depth + b"]}" * depth + b"]}"
        bare = b"[" * depth + b"]" * depth
        for line in [typed, bare]:
            bad, good = self.batch(line + b"\n" + GOOD_LINE + b"\n")
            self.assert_bad(bad)
            self.assert_good(good)

    def test_a_line_of_ten_megabytes(self):
        text = "x" * 10_000_000
        case = dict(GOOD, args=[{"t": "str", "v": text}])
        long, good = self.batch(json.dumps(case).encode() + b"\n" + GOOD_LINE + b"\n")
        packed = b"\x91\xdb" + len(text).to_bytes(4, "big") + text.encode()
        self.assertEqual(long["args_hash"], hashlib.blake2b(packed, digest_size=32).hexdigest())
        self.assert_good(good)

    def test_an_overlong_line(self):
        limit = 64 << 20
        answers = self.batch(b"x" * (limit + 1) + b"\n" + GOOD_LINE + b"\n" + b"y" * (limit + 5_000_000))
        self.assertEqual(len(answers), 3)
        self.assert_bad(answers[0], "too_large")
        self.assertIsNone(answers[0]["id"])
        self.assert_good(answers[1])
        self.assert_bad(answers[2], "too_large")

    def test_many_lines_in_order(self):
        count = 50_000
        lines = b"".join(b'{"id":%d,"value":{"t":"int","v":"%d"}}\n' % (i, i) for i in range(count))
        answers = self.batch(lines, "--scheme", "interop-value")
        self.assertEqual([each["id"] for each in answers], list(range(count)))

    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cases.jsonl")
            with open(path, "wb") as file:
                file.write(GOOD_LINE + b"\n")
            [answer] = self.batch(b"", "--scheme", "interop", path)
            self.assert_good(answer)
        [answer] = self.batch(GOOD_LINE, "--scheme", "interop", "-")
        self.assert_good(answer)

    def test_answers_come_when_they_are_waited_for(self):
        """A program may write one case, read one answer, and go on."""
        with subprocess.Popen([HOLDFAST, "key", "batch", "--scheme", "interop"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for _ in range(3):
                process.stdin.write(GOOD_LINE + b"\n")
                process.stdin.flush()
                self.assert_good(json.loads(process.stdout.readline()))
            process.stdin.close()
            self.assertEqual(process.stdout.read(), b"")
        self.assertEqual(process.returncode, 0)

    def test_warnings_are_bounded(self):
        lines = "".join(json.dumps({"id": i, "name": f"n{i}", "args": [{"t": "object_identity", "class": f"a.C{i}", "hash": i}]}) + "\n"
                        for i in range(2000))
        done = subprocess.run([HOLDFAST, "key", "batch", "--scheme", "failover", "--style", "exact"], input=lines.encode(),
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.count(b"\n"), 2000)
        warnings = done.stderr.decode().splitlines()
        self.assertEqual(len(warnings), 21)
        for each in warnings:
            self.assertTrue(each.startswith("holdfast: warning: "), each)


if __name__ == "__main__":
    unittest.main()
