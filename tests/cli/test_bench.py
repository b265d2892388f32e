"""holdfast bench: the shape of its answers. Whether the bars hold is the test bench.keys, which runs alone."""

import json
import unittest

from holdfast_process import CommandTest, run

# Others read these names: they never change.
KEY_ROWS = [
    "cachekit.small", "cachekit.one_int", "cachekit.map10", "cachekit.10kb", "cachekit.64kb",
    "interop.small", "failover.text", "failover.three_args", "batch.small",
]


class Bench(CommandTest):
    def test_list(self):
        self.assertEqual(self.fine("bench", "keys", "--list").split(), KEY_ROWS)

    def test_json(self):
        done = run("bench", "keys", "--json", "--rounds", "1")
        self.assertIn(done.returncode, (0, 1))
        self.assertEqual(done.stderr, b"")
        made = json.loads(done.stdout)
        self.assertEqual(list(made), ["bench", "rows"])
        self.assertEqual(made["bench"], "keys")
        self.assertEqual([row["name"] for row in made["rows"]], KEY_ROWS)
        for row in made["rows"]:
            self.assertEqual(list(row), ["name", "ours", "floor", "unit", "ratio", "bar", "holds"])
            self.assertAlmostEqual(row["ratio"], row["ours"] / row["floor"], delta=0.01 * row["ratio"])
            good = row["ratio"] >= row["bar"] if row["unit"].endswith("/s") else row["ratio"] <= row["bar"]
            if abs(row["ratio"] - row["bar"]) > 1e-4:  # nearer, what is printed may be rounded to the other side
                self.assertEqual(row["holds"], good)
        self.assertEqual(done.returncode == 0, all(row["holds"] for row in made["rows"]))

    def test_table(self):
        lines = run("bench", "keys", "--rounds", "1").stdout.decode().splitlines()
        self.assertEqual(lines[0].split(), ["name", "ours", "floor", "unit", "ratio", "bar", "holds"])
        self.assertEqual([line.split()[0] for line in lines[1:]], KEY_ROWS)
        column = lines[0].index("holds")
        for line in lines[1:]:
            self.assertIn(line[column:], ("yes", "NO"))


if __name__ == "__main__":
    unittest.main()
