"""holdfast config, and --config of the other commands."""

import json
import os
import re
import tempfile
import unittest

from holdfast_process import CommandTest, run

SERVE = """
[serve]
label = "test"
[stores.main]
url = "sqlite:{directory}/main.db"
prefix = "APP_"
create-schema = true
[outboxes.orders]
url = "${{TEST_OUTBOX}}"
password = "hush"
[sequences]
url = "sqlite:{directory}/seq.db"
[failover.points.prices]
expiry = "2h"
"""


class Config(CommandTest):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.file = self.write("serve.toml", SERVE.format(directory=self.directory.name))
        self.env = {"TEST_OUTBOX": f"sqlite:{self.directory.name}/outbox.db"}

    def write(self, name, text):
        path = os.path.join(self.directory.name, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_check(self):
        self.assertEqual(self.fine("config", "check", self.file, env=self.env), "the configuration is valid: 1 store, 1 outbox, sequences\n")
        self.assertTrue(self.fine_json("config", "check", self.file, "--json", env=self.env)["valid"])
        self.assertIn("TEST_OUTBOX is not set", self.refused("config", "check", self.file))
        wrong = self.write("wrong.toml", "[stores.main]\nulr = 'x'\n[failover.points.p]\nexpiry = 'soon'\n")
        line = self.refused("config", "check", wrong)
        self.assertIn(wrong, line)
        for part in ("line 2: stores.main.ulr: there is no such key; the nearest is stores.main.url", "line 4: failover.points.p.expiry: 'soon' is not"):
            self.assertIn(part, line)
        engine = self.write("engine.toml", "[failover.store]\nurl = 'sqlite:a.db'\n[failover.points.p]\nexpiry = '1h'\n")
        self.assertIn("an engine", self.fine("config", "check", engine))
        self.assertIn("no-such", self.refused("config", "check", "no-such.toml", code=3))

    def test_check_reports_urls_addresses_and_files_with_their_lines(self):
        wrong = self.write("urls.toml", "[serve]\nlisten = ['nonsense', '127.0.0.1:0', 'unix:/x']\nstate = '/tmp/x/state.db'\n"
                                        "[stores.main]\nurl = 'mongodb://host/x'\n[outboxes.o]\nurl = 'postgresql://h:port/x'\n"
                                        "[gateway]\nlisten = '127.0.0.1:99999'\n[gateway.routes.r]\npath = '/'\nupstream = 'http://x'\n"
                                        "[failover.points.r]\nexpiry = '1h'\n")
        for words in (("config", "check", wrong), ("serve", "--check", "--config", wrong)):
            line = self.refused(*words)
            for part in (wrong, "line 2: serve.listen: 'nonsense' is not an address", "line 3: serve.state: ", "sqlite:///", "line 5: stores.main.url: ",
                         "mongodb", "line 7: outboxes.o.url: ", "line 9: gateway.listen: '127.0.0.1:99999'"):
                self.assertIn(part, line)
            self.assertNotIn("'unix", line)
        hidden = self.write("hidden.toml", "[stores.main]\nurl = '${TEST_URL}'\n")
        line = self.refused("config", "check", hidden, env={"TEST_URL": "hush:password"})
        self.assertIn("line 2: stores.main.url: ", line)
        self.assertNotIn("hush", line)
        no_file = self.write("tls.toml", "[stores.main]\nurl = 'memory:'\n[serve.tls]\ncertificate = '/no/cert'\nkey = '/no/key'\n"
                                       "[gateway.routes.r]\npath = '/'\nupstream = 'ftp://x'\n[failover.points.r]\nexpiry = '1h'\n")
        line = self.refused("config", "check", no_file)
        self.assertIn("line 4: serve.tls.certificate: cannot read the certificate /no/cert: No such file or directory; name a PEM file", line)
        self.assertIn("line 8: gateway.routes.r.upstream: an upstream is http://", line)
        self.assertIn("serve.tls.certificate: cannot read the certificate /no/cert: No such file or directory", self.refused("serve", "--config", no_file, "--listen", "127.0.0.1:0"))

    def test_reference_says_what_to_uncomment(self):
        self.assertIn("[stores.NAME]", self.fine("config", "reference").splitlines()[0])
        line = self.refused("config", "check", self.write("reference.toml", self.fine("config", "reference")))
        self.assertIn("reference.toml: there is nothing to serve; write or uncomment [stores.NAME]", line)

    def test_show(self):
        rows = {row["key"]: row for row in map(json.loads, self.fine("config", "show", self.file, "--json", env=self.env).splitlines())}
        self.assertEqual((rows["serve.label"]["value"], rows["serve.label"]["from"]), ("test", "line 3"))
        self.assertEqual((rows["serve.drain"]["value"], rows["serve.drain"]["from"]), ("5s", "default"))
        self.assertEqual(rows["outboxes.orders.url"]["from"], "line 9, environment")
        self.assertEqual(rows["outboxes.orders.password"]["value"], "***")
        self.assertEqual((rows["failover.points.prices.expiry"]["value"], rows["failover.points.prices.expiry"]["line"]), ("2h", 14))
        self.assertEqual((rows["failover.points.prices.late"]["value"], rows["failover.points.prices.late"]["from"]), ("keep", "default"))
        self.assertEqual(rows["failover.read-deadline"]["value"], "1s")
        text = self.fine("config", "show", self.file, env=self.env)
        self.assertNotIn("hush", text)
        self.assertRegex(text, r"serve\.label +test +line 3\n")

    def test_reference_has_every_key_with_a_default_that_is_valid(self):
        rows = [json.loads(line) for line in self.fine("config", "reference", "--json").splitlines()]
        keys = {row["key"] for row in rows}
        self.assertTrue({"serve.tls.certificate", "stores.NAME.url", "gateway.routes.NAME.upstream", "failover.points.NAME.breaker.window"} <= keys)
        self.assertEqual(len(keys), len(rows))
        text = self.fine("config", "reference")
        self.assertEqual(len(re.findall(r"^# \S+ =", text, re.M)), len(rows))
        self.assertTrue(all(line.startswith("#") or not line for line in text.splitlines()))
        # Each default is a value that the parser accepts: as a file, and nothing changes.
        lines = [f"{row['key'].replace('NAME', 'main')} = {row['default']}" for row in rows
                 if row["default"] and not row["key"].startswith(("gateway.", "sequences.", "failover.store."))]
        defaults = self.write("defaults.toml", "\n".join(lines + ["stores.main.url = 'sqlite:a.db'", "outboxes.main.url = 'sqlite:a.db'"]))
        self.assertGreater(len(lines), 50)
        self.fine("config", "check", defaults)
        engine = [f"{row['key'].replace('NAME', 'main')} = {row['default']}" for row in rows
                  if row["default"] and row["key"].startswith("failover.store.") and "multitenant" not in row["key"]]
        self.fine("config", "check", self.write("store.toml", "\n".join(engine)))

    def test_commands_take_their_database_from_it(self):
        at = ("--config", self.file)
        self.fine("store", "put", *at, "--create-schema", "--name", "n", "--key", "k", "--payload", "1", env=self.env)
        self.assertEqual(self.fine("store", "get", *at, "--store", "main", "--name", "n", "--key", "k", env=self.env), "1\n")
        self.assertEqual(self.fine("store", "get", "--store", f"sqlite:{self.directory.name}/main.db", "--prefix", "APP_", "--name", "n", "--key", "k"), "1\n",
                         "it has used the prefix of the file")
        self.assertEqual(self.fine("store", "get", *at, "--name", "n", "--key", "k", env={**self.env, "HOLDFAST_STORE": "sqlite:other.db"}), "1\n")
        self.fine("seq", "next", *at, "--create-schema", "--name", "ids", env=self.env)
        self.fine("outbox", "publish", *at, "--create-schema", "--type", "t", "--payload", "{}", env=self.env)
        self.assertEqual(self.fine_json("outbox", "stats", "--config", self.file, "--outbox", "orders", "--json", env=self.env)["published"], 1)
        engine = self.write("engine.toml", f"[failover.store]\nurl = 'sqlite:{self.directory.name}/main.db'\ntable-prefix = 'APP_'\n")
        self.assertEqual(self.fine("store", "get", "--config", engine, "--name", "n", "--key", "k"), "1\n")

    def test_mistakes(self):
        self.assertIn("give --store main", self.refused("store", "names", "--config", self.file, "--store", "other", env=self.env))
        self.assertIn("remove the URL", self.refused("store", "names", "--config", self.file, "--store", "sqlite:a.db", env=self.env))
        self.assertIn("--store is missing", self.refused("store", "names"))
        self.assertIn("give the URL", self.refused("outbox", "stats", "--config", self.write("e.toml", "[failover]\nenabled = true\n")))


if __name__ == "__main__":
    unittest.main()
