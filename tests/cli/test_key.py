"""holdfast key failover, cachekit, interop, slot, outbox."""

import binascii
import hashlib
import os
import tempfile
import unittest
import uuid

from holdfast_process import CommandTest, run


def java_uuid(text):
    """UUID.nameUUIDFromBytes."""
    return str(uuid.UUID(bytes=hashlib.md5(text.encode()).digest(), version=3))


def blake2b(data):
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def slot_of(key):
    if b"{" in key:
        begin = key.index(b"{") + 1
        end = key.find(b"}", begin)
        if end > begin:
            key = key[begin:end]
    return binascii.crc_hqx(key, 0) % 16384


class Failover(CommandTest):
    def test_three_layers(self):
        key = java_uuid("country:FR")
        text = self.fine("key", "failover", "--name", "country-by-code", "--domain", "country", "FR")
        self.assertEqual(text, f"raw   FR\nuuid  {key}\nrow   (country, {key})\n")

    def test_json(self):
        key = java_uuid("n:a\\:b:c")
        self.assertEqual(
            self.fine_json("key", "failover", "--name", "n", "--json", "a:b", "c"),
            {"effective_name": "n", "raw_key": "a\\:b:c", "uuid": key, "row": {"failover_name": "n", "failover_key": key}},
        )

    def test_styles(self):
        def make(*words):
            return self.fine_json("key", "failover", "--name", "n", "--json", *words)["raw_key"]

        self.assertEqual(make("--style", "exact", "a:b", "c"), make("--style", "exact", "a", "b:c"))
        self.assertNotEqual(make("--style", "escaped", "a:b", "c"), make("a", "b:c"))
        self.assertEqual(make(), "NO-ARG")
        self.assertEqual(make("--style=exact", "--json-args", "1e7", "null", "[1,2]"), "1.0E7::1,2")

    def test_blank_domain_is_none(self):
        made = self.fine_json("key", "failover", "--name", "n", "--domain", "  ", "--json", "x")
        self.assertEqual(made["effective_name"], "n")

    def test_generator(self):
        made = self.fine_json("key", "failover", "--name", "n", "--generator", "sorted_csv", "--json", "3, 2,1")
        self.assertEqual(made["raw_key"], "1,2,3")
        self.assertIn("sorted_csv", self.refused("key", "failover", "--name", "n", "--generator", "sorted", "x"))

    def test_blake2b(self):
        plain = self.fine_json("key", "failover", "--name", "n", "--hash", "blake2b", "--json", "x")["uuid"]
        self.assertEqual(uuid.UUID(plain).version, 8)
        with tempfile.TemporaryDirectory() as folder:
            def keyed(content):
                path = os.path.join(folder, "secret")
                with open(path, "wb") as file:
                    file.write(content)
                return run("key", "failover", "--name", "n", "--hash", "blake2b", "--secret-file", path, "--json", "x")

            secret = keyed(b"0123456789abcdef")
            self.assertEqual(secret.returncode, 0)
            self.assertNotIn(plain, secret.stdout.decode())
            self.assertEqual(keyed(b"0123456789abcdef\n").stdout, secret.stdout)
            self.assert_complaint(keyed(b"short"), 2)
            self.assert_complaint(keyed(b""), 2)
            self.assert_complaint(keyed(b"x" * 5000), 2)
            path = os.path.join(folder, "secret")
            self.refused("key", "failover", "--name", "n", "--secret-file", path, "x")
            self.refused("key", "failover", "--name", "n", "--hash", "blake2b", "--secret-file", path + "-none", "x")

    def test_unstable_objects(self):
        typed = '{"t":"object_identity","class":"a.B","hash":51966}'
        done = run("key", "failover", "--name", "n", "--style", "exact", typed)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"a.B@cafe", done.stdout)
        self.assertEqual(done.stderr.count(b"\n"), 1)
        self.assertTrue(done.stderr.startswith(b"holdfast: warning: "))
        self.refused("key", "failover", "--name", "n", typed)

    def test_control_characters_stay_on_their_line(self):
        text = self.fine("key", "failover", "--name", "n", "a\nb\x1b[2J")
        self.assertEqual(text.count("\n"), 3)
        self.assertNotIn("\x1b", text)
        self.assertEqual(self.fine_json("key", "failover", "--name", "n", "--json", "a\nb\x7f")["raw_key"], "a\nb\x7f")

    def test_refused(self):
        self.refused("key", "failover", "x")
        self.refused("key", "failover", "--name", " ", "x")
        self.assertIn("args[1]", self.refused("key", "failover", "--name", "n", "x", b"\xff"))


class CacheKit(CommandTest):
    def test_key(self):
        digest = blake2b(b"\x92\x91\xa1x\x80")
        text = self.fine("key", "cachekit", "--namespace", "prod", "--module", "app.users", "--qualname", "get", "x")
        self.assertEqual(text, f"ns:prod:func:app.users.get:args:{digest}:1s\n")

    def test_json_and_keywords(self):
        made = self.fine_json("key", "cachekit", "--module", "m", "--qualname", "f", "--json", "--json-args", "42",
                              "--kwarg", "b=true", "--kwarg", 'a="x=y"')
        packed = bytes.fromhex(made["msgpack_hex"])
        self.assertEqual(packed, b"\x92\x91\x2a\x82\xa1a\xa3x=y\xa1b\xc3")
        self.assertEqual(made["args_hash"], blake2b(packed))
        self.assertEqual(made["key"], f"func:m.f:args:{made['args_hash']}:1s")

    def test_dialects_and_serializers(self):
        def ending(*words):
            return self.fine("key", "cachekit", "--module", "m", "--qualname", "f", *words).strip().rsplit(":", 1)[1]

        self.assertEqual(ending("--no-integrity"), "0s")
        self.assertEqual(ending("--serializer", "arrow"), "1w")
        self.assertEqual(ending("--serializer", "other", "--dialect", "v1_0"), "1s")
        self.assertEqual(ending("--serializer", "local", "--dialect", "py_0_17"), "1l")
        self.assertRegex(ending("--serializer", "other"), "^1x[0-9a-f]{4}$")

    def test_the_former_name_of_a_dialect_is_accepted_but_not_listed(self):
        call = ["key", "cachekit", "--module", "m", "--qualname", "f<g>", "x", "--dialect"]
        self.assertEqual(self.fine(*call, "seed"), self.fine(*call, "v1_0"))
        self.assertNotIn("seed", self.fine("key", "cachekit", "--help"))

    def test_refused(self):
        self.refused("key", "cachekit", "--module", "m", "x")
        self.refused("key", "cachekit", "--module", "m", "--qualname", "f", "--kwarg", "x")
        self.refused("key", "cachekit", "--module", "m", "--qualname", "f", "--kwarg", "=x")
        self.refused("key", "cachekit", "--module", "m", "--qualname", "f", "--kwarg", "a=1", "--kwarg", "a=2")
        self.refused("key", "cachekit", "--module", "m", "--qualname", "f", "--serializer", "")
        line = self.refused("key", "cachekit", "--module", "m", "--qualname", "f", '{"t":"set","v":[]}')
        self.assertIn("args[0]", line)
        line = self.refused("key", "cachekit", "--module", "m", "--qualname", "f", "--json-args", "--kwarg", "a=[")
        self.assertIn('kwargs["a"]', line)


class Interop(CommandTest):
    def test_text_typed_and_plain_json(self):
        def packed(*words):
            return self.fine_json("key", "interop", "users", "get", "--json", *words)["canonical_hex"]

        self.assertEqual(packed(), "90")
        self.assertEqual(packed("42"), "91a23432")
        self.assertEqual(packed("--json-args", "42"), "912a")
        self.assertEqual(packed("--json-args", "-5", "1.5", "true", "null"), "94fbcb3ff8000000000000c3c0")
        self.assertEqual(packed("--json-args", '"x"', "[1,2]", '{"b":1,"a":{}}'), "93a17892010282a16180a16201")
        self.assertEqual(packed("--json-args", "18446744073709551615"), "91cfffffffffffffffff")
        self.assertEqual(packed('{"t":"int","v":"42"}'), "912a")
        self.assertEqual(packed("--json-args", '{"t":"int","v":"42"}', "7"), "922a07")
        # The rule is about exactly five characters: with a space it is a plain map, or text.
        self.assertEqual(packed("--json-args", '{ "t":1}'), "9181a17401")
        self.assertEqual(packed('{ "t":1}'), "91a8" + '{ "t":1}'.encode().hex())

    def test_words_with_a_meaning_elsewhere(self):
        """Arguments that the parser of the command line, or a shell, might take for something else."""
        for word in ["", "-", "{}", "[]", "[a,b]", "[", "++", "%%", "key", "interop", "demo", "help", "-5", "/x", "a=b", "\x01x", "a\nb"]:
            with self.subTest(word=word):
                made = self.fine_json("key", "interop", "users", "get", "--json", word)["canonical_hex"]
                self.assertEqual(made, "91" + bytes([0xA0 + len(word.encode())]).hex() + word.encode().hex())
        for word in ["--json", "--", "-x", "--help", "[1]"]:
            with self.subTest(word=word):
                made = self.fine_json("key", "interop", "users", "get", "--json", "--", word)["canonical_hex"]
                self.assertEqual(made, "91" + bytes([0xA0 + len(word)]).hex() + word.encode().hex())

    def test_plain_output_is_the_key_alone(self):
        self.assertEqual(self.fine("key", "interop", "users", "get"), f"users:get:{blake2b(bytes([0x90]))}\n")

    def test_refused(self):
        self.refused("key", "interop")
        self.refused("key", "interop", "users")
        self.refused("key", "interop", "Users", "get")
        self.refused("key", "interop", "ns", "get")
        self.refused("key", "interop", "users", "a..b")
        self.assertIn("args[0]", self.refused("key", "interop", "users", "get", "--json-args", "x"))
        self.assertIn("args[1]", self.refused("key", "interop", "users", "get", "--json-args", "1", "18446744073709551616"))
        self.assertIn("args[0]", self.refused("key", "interop", "users", "get", "--json-args", "[" * 100000))
        self.assertIn("args[0]", self.refused("key", "interop", "users", "get", "--json-args", "[" * 1100 + "]" * 1100))
        self.assertIn("args[0]", self.refused("key", "interop", "users", "get", "--json-args", '{"a":1,"a":2}'))
        self.assertIn("args[0]", self.refused("key", "interop", "users", "get", "--json-args", ""))
        self.assertIn("args[0]", self.refused("key", "interop", "users", "get", "--json-args", b'"\xff"'))
        self.assertIn("args[0]", self.refused("key", "interop", "users", "get", '{"t":"f64","v":"0x7ff8000000000000"}'))
        self.refused("key", "interop", "users", "get", '{"t":')
        self.refused("key", "interop", "users", "get", '{"t":"nonsense"}')


class Slot(CommandTest):
    KEYS = [b"foo", b"{}", b"{user:1}:name", b"a{}b{c}", b"a{{b}}", b"a{b", b"}a{b}", b"", b"\xff\x00"[:1]]

    def test_slots(self):
        text = self.fine("key", "slot", "foo", "{user:1}:name")
        self.assertEqual(text, f"{slot_of(b'foo'):5}  foo\n{slot_of(b'{user:1}:name'):5}  {{user:1}}:name\n")

    def test_json(self):
        made = self.fine_json("key", "slot", "--json", *self.KEYS)["slots"]
        self.assertEqual([each["slot"] for each in made], [slot_of(key) for key in self.KEYS])
        self.assertEqual(made[0]["key"], "foo")
        self.assertEqual(made[-1]["key_hex"], "ff")

    def test_refused(self):
        self.refused("key", "slot")


class Outbox(CommandTest):
    def test_keys(self):
        slot = slot_of(b"{identity:outbox}")
        self.assertEqual(
            self.fine("key", "outbox"),
            "entries     {identity:outbox}:entries\npending     {identity:outbox}:pending\n"
            f"expiry due  {{identity:outbox}}:expiry-due\nlock        {{identity:outbox}}:lock\nslot        {slot}\n",
        )

    def test_json(self):
        made = self.fine_json("key", "outbox", "--json", "{b}:7")
        self.assertEqual(
            made,
            {"prefix": "{b}:7", "entries": "{b}:7:entries", "pending": "{b}:7:pending", "expiry_due": "{b}:7:expiry-due",
             "lock": "{b}:7:lock", "slot": slot_of(b"b")},
        )

    def test_refused(self):
        for prefix in ["", "x", "{}", "{a}{b}", "{a", "{a b}", "{a}\n", "{" + "a" * 300 + "}"]:
            with self.subTest(prefix=prefix):
                self.refused("key", "outbox", prefix)
        self.refused("key", "outbox", "{a}", "{b}")


if __name__ == "__main__":
    unittest.main()
