"""holdfast man: groff formats the pages without a warning, man finds their names, and they say what --help says."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from holdfast_process import CommandTest
from test_usage import tree

ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MAN_KEEP_FORMATTING": "", "MANPAGER": "cat", "PAGER": "cat", "MANROFFOPT": ""}


def text_of(formatted):
    """The words of a page, whatever its lines."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|.\x08", "", formatted).split())


class Man(CommandTest):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = directory.name

    def setUp(self):
        self.printed = self.fine("man", self.directory)
        self.pages = sorted(os.listdir(self.directory))

    def shown(self, page):
        done = subprocess.run(["man", "--warnings=w", "-l", os.path.join(self.directory, page)], capture_output=True, env=ENVIRONMENT, timeout=60)
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""), page)
        return text_of(done.stdout.decode())

    def test_there_is_a_page_for_each_command(self):
        self.assertEqual(self.pages, sorted({"-".join(["holdfast", *path[:1]]) + ".1" for path in tree()}))
        self.assertEqual(sorted(self.printed.splitlines()), [os.path.join(self.directory, page) for page in self.pages])

    def test_groff_has_no_warning(self):
        for page in self.pages:
            with self.subTest(page):
                done = subprocess.run(["groff", "-man", "-Tutf8", "-Kutf8", "-ww", "-z", os.path.join(self.directory, page)],
                                      capture_output=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr.decode()), (0, ""))

    def test_whatis_finds_the_names(self):
        for page in self.pages:
            with self.subTest(page):
                done = subprocess.run(["lexgrog", os.path.join(self.directory, page)], capture_output=True, env=ENVIRONMENT, timeout=60)
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertIn(f'"{page[:-2]} - ', done.stdout.decode())

    def test_they_say_what_help_says(self):
        shown = {page: self.shown(page) for page in self.pages}
        for path in tree():
            with self.subTest(command=path):
                page = shown["-".join(["holdfast", *path[:1]]) + ".1"]
                help_text = self.fine(*path, "--help")
                usage = re.search(r"\nUsage: (.*)\n", help_text)[1]
                if not usage.endswith("COMMAND"):
                    self.assertIn(usage, page)
                self.assertIn(" ".join(help_text.split("\n\n")[0].split()), page)
                for example in help_text.split("\nExamples:\n")[1].splitlines():
                    self.assertIn(" ".join(example.split()), page)
                for option in re.findall(r"^  (?:-., )?(--[a-z-]+)", help_text, re.MULTILINE):
                    self.assertIn(option, page)

    def test_it_is_the_same_each_time(self):
        before = [Path(self.directory, page).read_text(encoding="utf-8") for page in self.pages]
        self.fine("man", self.directory)
        self.assertEqual([Path(self.directory, page).read_text(encoding="utf-8") for page in self.pages], before)

    def test_mistakes(self):
        self.refused("man")
        self.assertIn("check that its directory exists", self.refused("man", os.path.join(self.directory, "no-such"), code=3))


if __name__ == "__main__":
    unittest.main()
