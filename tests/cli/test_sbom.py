"""scripts/sbom: what the build links, as SPDX, compared with what the loader and dpkg say."""

import json
import os
import re
import subprocess
import tempfile
import unittest

HOLDFAST = os.environ["HOLDFAST"]
SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "sbom")
BUILD = os.path.join(os.path.dirname(HOLDFAST), "..", "..")


class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = subprocess.run([SCRIPT, "--build", BUILD, HOLDFAST], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
        assert done.returncode == 0, done.stderr
        cls.text = done.stdout
        cls.document = json.loads(done.stdout)
        cls.packages = {each["name"]: each for each in cls.document["packages"]}

    def test_it_is_spdx(self):
        document = self.document
        self.assertEqual((document["spdxVersion"], document["dataLicense"], document["SPDXID"]), ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"))
        self.assertEqual(document["creationInfo"]["created"], "2023-11-14T22:13:20Z")
        ids = [each["SPDXID"] for each in document["packages"]]
        self.assertEqual(len(ids), len(set(ids)))
        for each in document["packages"]:
            self.assertRegex(each["SPDXID"], r"^SPDXRef-[A-Za-z0-9.-]+$")
            for field in ("name", "versionInfo", "downloadLocation", "licenseConcluded", "licenseDeclared", "copyrightText"):
                self.assertTrue(each[field], each)
        known = {*ids, "SPDXRef-DOCUMENT"}
        for each in document["relationships"]:
            self.assertIn(each["spdxElementId"], known)
            self.assertIn(each["relatedSpdxElement"], known)
        self.assertNotIn(os.path.realpath(BUILD), self.text, "paths of this machine are nobody's business")

    def test_it_has_every_library_that_is_loaded(self):
        asked_for = re.findall(r"\(NEEDED\).*\[(.+)\]", subprocess.run(["readelf", "-d", HOLDFAST], capture_output=True, text=True, check=True).stdout)
        linked = {each["relatedSpdxElement"] for each in self.document["relationships"] if each["relationshipType"] == "DYNAMIC_LINK"}
        self.assertIn("libc6", self.packages)
        for library, package in (("libsqlite3.so", "libsqlite3-0"), ("libpq.so", "libpq5"), ("libmariadb.so", "libmariadb3"), ("libssl.so", "libssl3"),
                                 ("libhiredis.so", "libhiredis0.14"), ("libodbc.so", "libodbc2")):
            if any(each.startswith(library) for each in asked_for):
                self.assertIn(self.packages[package]["SPDXID"], linked)
        for name in ("libcli11-dev", "libtomlplusplus-dev"):
            if subprocess.run(["dpkg", "-s", name], capture_output=True).returncode == 0:
                self.assertIn(name, self.packages, "compiled in")

    def test_versions_are_those_of_dpkg(self):
        for name, package in self.packages.items():
            if name == "holdfast":
                continue
            version = subprocess.run(["dpkg-query", "-W", "-f=${Version}\n", name], capture_output=True, text=True, check=True).stdout.split()
            self.assertIn(package["versionInfo"], version)

    def test_mistakes(self):
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run([SCRIPT, "--build", empty], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("build it first", done.stderr)


if __name__ == "__main__":
    unittest.main()
