"""Every reference behaviour and defect has a test that exists, and the table in the docs is the one made of them.

reference_table.py          checks
reference_table.py --write  writes docs/reference-comparison.md anew
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PAGE = ROOT / "docs" / "reference-comparison.md"
KINDS = {"same", "better", "other"}
HEAD = """# Comparison with the Java library

Each line has a behaviour or a defect of the Société Générale Failover library, and says whether Holdfast does the same, better, or something else. The test shows it.
A test makes this page from `tests/unit/failover/reference_table.txt`, and checks that the named tests exist.

| | behaviour or defect of the Java library | Holdfast | test |
| --- | --- | --- | --- |
"""


def rows():
    for line in (HERE / "reference_table.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield [field.strip() for field in line.split("|")]


def known_tests():
    tests = set()
    for source in (ROOT / "tests").rglob("*.[ch]pp"):
        for suite, name in re.findall(r"\b(?:TYPED_TEST|TYPED_TEST_P|TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\s*(\w+),\s*(\w+)",
                                      source.read_text(encoding="utf-8")):
            tests.add(f"{suite}.{name}")
    return tests


def main():
    problems = []
    tests = known_tests()
    table = list(rows())
    for row in table:
        if len(row) != 4 or row[2] not in KINDS:
            problems.append(f"not a line of this table: {' | '.join(row)}")
        elif row[3] not in tests:
            problems.append(f"{row[0]}: there is no test {row[3]}")
    page = HEAD + "".join(f"| {row[0]} | {row[1]} | {row[2]} | `{row[-1]}` |\n" for row in table)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        problems.append(f"{PAGE.relative_to(ROOT)} is not made of this table; run tests/unit/failover/reference_table.py --write")
    print("\n".join(problems) or f"{len(table)} lines, each with its test")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
