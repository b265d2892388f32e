"""The console of holdfast serve without a browser: its files, their headers, their size, and the API calls of its modules."""

import gzip
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from test_serve import Serve

ASSETS = Path(__file__).resolve().parents[2] / "src/serve/console/assets"
MOST_BYTES = 100 * 1024
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
TYPES = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
# How the modules call the API, and the method of each function.
METHODS = {"get": "get", "post": "post", "post_empty": "post", "remove": "delete", "run_job": "post"}


def path_of(name):
    return "/" if name == "index.html" else f"/console/{name}"


class Console(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.server = Serve(cls.directory.name)
        cls.names = sorted(file.name for file in ASSETS.iterdir())
        cls.served = {name: cls.server.get(path_of(name)) for name in cls.names}

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()
        cls.directory.cleanup()

    def texts(self, suffix):
        return {name: body.decode() for name, (_, body, _) in self.served.items() if name.endswith(suffix)}

    def test_every_file_is_served_with_its_headers(self):
        for name, (status, body, fields) in self.served.items():
            with self.subTest(name):
                self.assertEqual(status, 200)
                self.assertEqual(fields["Content-Type"], TYPES[name.rsplit(".")[1]])
                self.assertEqual(fields["Content-Security-Policy"], POLICY)
                self.assertEqual(fields["X-Content-Type-Options"], "nosniff")
                self.assertEqual(fields["Referrer-Policy"], "no-referrer")
                self.assertEqual(fields["Cross-Origin-Resource-Policy"], "same-origin")
                self.assertEqual(fields["Cache-Control"], "no-cache")
                self.assertEqual(fields["Vary"], "Accept-Encoding")
                self.assertEqual(fields["ETag"], f'"{hashlib.sha256(body).hexdigest()}"')
                self.assertNotIn("Set-Cookie", fields)

    def test_compressed_files_have_the_same_content_and_another_tag(self):
        for name, (_, body, fields) in self.served.items():
            status, compressed, others = self.server.get(path_of(name), Accept_Encoding="br, gzip")
            self.assertEqual((status, others["Content-Encoding"]), (200, "gzip"))
            self.assertEqual(gzip.decompress(compressed), body)
            self.assertEqual(others["ETag"], f'"{hashlib.sha256(compressed).hexdigest()}"')
            self.assertNotEqual(others["ETag"], fields["ETag"])
        self.assertNotIn("Content-Encoding", self.server.get("/", Accept_Encoding="gzip;q=0")[2])

    def test_a_known_file_is_not_sent_again(self):
        for name, (_, _, fields) in self.served.items():
            status, body, others = self.server.get(path_of(name), If_None_Match=fields["ETag"])
            self.assertEqual((status, body, others["ETag"]), (304, b"", fields["ETag"]))
        status, body, _ = self.server.get("/", If_None_Match='"another"')
        self.assertEqual((status, body), (200, self.served["index.html"][1]))

    def test_other_requests(self):
        self.assertEqual(self.server.get("/console/missing.js")[0], 404)
        self.assertEqual(self.server.get("/console/..%2findex.html")[0], 400)
        self.assertEqual(self.server.get("/", method="POST", body="{}")[0], 405)
        status, body, fields = self.server.get("/", method="HEAD")
        self.assertEqual((status, body, int(fields["Content-Length"])), (200, b"", len(self.served["index.html"][1])))

    def test_the_console_is_small(self):
        total = sum(len(body) for _, body, _ in self.served.values())
        self.assertLessEqual(total, MOST_BYTES)

    def test_every_file_is_used_and_nothing_is_loaded_from_elsewhere(self):
        pages, modules = self.texts(".html"), self.texts(".js")
        used = set(re.findall(r'(?:href|src)="/console/([^"]+)"', pages["index.html"]))
        for text in modules.values():
            used |= set(re.findall(r"from '\./([^']+)'", text))
        self.assertEqual(used | {"index.html"}, set(self.names))
        for name in self.names:
            text = self.served[name][1].decode().replace("http://www.w3.org/2000/svg", "")
            self.assertNotRegex(text, r"https?://|[\"'(]//", name)
        self.assertNotRegex(self.texts(".css")["console.css"], r"@import|url\(")

    def test_nothing_becomes_markup_or_code(self):
        page = self.texts(".html")["index.html"]
        self.assertEqual(re.findall(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", page), [])
        for name, text in self.texts(".js").items():
            self.assertNotRegex(text, r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|createContextualFragment|DOMParser", name)
            self.assertNotRegex(text, r"setAttribute\('style|style:|style=", name)

    def test_every_module_parses(self):
        node = shutil.which("node") or shutil.which("nodejs")
        with tempfile.TemporaryDirectory() as directory:
            for name, text in self.texts(".js").items():
                file = Path(directory) / name.replace(".js", ".mjs")
                file.write_text(text)
                done = subprocess.run([node, "--check", file], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, name + done.stderr)

    def test_the_served_modules_are_those_of_the_repository(self):
        """The build leaves out lines of comments, empty lines and indentation, and changes nothing else."""
        for name, text in self.texts(".js").items():
            lines = [line.lstrip(" ") for line in (ASSETS / name).read_text().split("\n")]
            self.assertEqual(text.strip("\n").split("\n"), [line for line in lines if line and not line.startswith("//")], name)

    def test_every_call_of_a_module_is_in_the_api(self):
        """Modules name each path as url`/v1/...`, so that a call of an endpoint that is gone is found here."""
        paths = json.loads(self.server.get("/v1/openapi.json")[1])["paths"]
        shapes = {(re.sub(r"\{[^}]*\}", "{}", path), method) for path, methods in paths.items() for method in methods}
        known = {path for path, _ in shapes}
        calls = 0
        for name, text in self.texts(".js").items():
            for path in re.findall(r"url`([^`]*)`", text):
                self.assertIn(re.sub(r"\$\{[^}]*\}", "{}", path), known, name)
            for function, path in re.findall(r"\b(get|post|post_empty|remove|run_job)\((?:with_query\()?url`([^`]*)`", text):
                self.assertIn((re.sub(r"\$\{[^}]*\}", "{}", path), METHODS[function]), shapes, name)
                calls += 1
            self.assertEqual(re.findall(r"""(?<!url)["'`]/v1/(?!events|session)""", text), [], name)
        self.assertGreater(calls, 30)


if __name__ == "__main__":
    unittest.main()
