"""holdfast redis, as far as it needs no server. With one: tests/integration/redis_doctor_test.cpp."""

import unittest

from holdfast_process import CommandTest


class Redis(CommandTest):
    def test_help(self):
        self.assertIn("doctor", self.fine("redis", "--help"))
        self.assertIn("HOLDFAST_REDIS_PASSWORD", self.fine("redis", "doctor", "--help"))

    def test_urls_that_cannot_be_meant(self):
        for url, word in [
            ("redis+sentinel://127.0.0.1:26379", "/mymaster"),
            ("redis+sentinel://127.0.0.1:26379/main/1", "?db=1"),
            ("http://127.0.0.1", "redis+cluster://"),
            ("redis:127.0.0.1", "//"),
            ("redis://a:1,,b:2", "comma"),
            ("redis+cluster://a/1", "database"),
            ("redis://h?nonsense=1", "nonsense"),
            ("redis://h?tls_ca=/x", "rediss://"),
            ("redis://user@h", "password"),
            ("redis+unix://x", "three slashes"),
        ]:
            with self.subTest(url=url):
                self.assertIn(word, self.refused("redis", "doctor", url))

    def test_addresses_without_a_scheme(self):
        self.assertIn("127.0.0.1:1", self.refused("redis", "doctor", "127.0.0.1:1", code=3))
        self.assertIn("localhost:1", self.refused("redis", "doctor", "localhost:1", code=3))
        self.assertIn("/nowhere/redis.sock", self.refused("redis", "doctor", "/nowhere/redis.sock", code=3))

    def test_a_password_is_never_printed(self):
        for url in ["redis://u:hush@127.0.0.1:1", "redis://u:hush@h:0", "redis+sentinel://u:hush@h", "redis://u:hush@h/x", "redis://u:hush@a,,b"]:
            with self.subTest(url=url):
                code = 3 if url.endswith(":1") else 2
                self.assertNotIn("hush", self.refused("redis", "doctor", url, code=code))

    def test_nobody_there(self):
        self.assertIn("127.0.0.1:1", self.refused("redis", "doctor", "redis://127.0.0.1:1", code=3))
        self.assertIn("/nowhere/redis.sock", self.refused("redis", "doctor", "redis+unix:///nowhere/redis.sock", code=3))
        self.refused("redis", "doctor", "redis+cluster://127.0.0.1:1", code=3)
        self.assertIn("127.0.0.1:1", self.refused("redis", "doctor", "redis+sentinel://127.0.0.1:1/main", code=3))
        self.assertIn("none of the addresses", self.refused("redis", "doctor", "redis://127.0.0.1:1,127.0.0.1:2", code=3))

    def test_doctor_needs_a_server(self):
        self.refused("redis", "doctor")
        self.refused("redis")


if __name__ == "__main__":
    unittest.main()
