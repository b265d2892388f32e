#!/usr/bin/python3
"""Known answers through `holdfast key batch`: the project's own vectors, and published ones where they are at hand.

    vectors_test.py --cli PATH

The directory of published vectors is $HOLDFAST_SHARED_VECTORS, or ../shared/vectors beside the repository. It belongs to
the development environment, not to the repository: without it the project's own vectors are all there is to run.
Every vector is also asked of the oracle, so that the random cases of differential_test.py stand on checked ground.
"""

import argparse
import json
import os
import pathlib
import sys

import batch
import oracle
import published_vectors
from make_vectors import expanded

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# Lines that are no cases at all. Each gets one error line, and the good case after them its answer.
BAD_LINES = [
    "{",
    "[]",
    '"text"',
    "null",
    "{}",
    '{"id":1',
    '{"id":"x","args":[{"t":"int","v":"1"}]',
    '{"id":"x"}{"id":"y"}',
    '{"id":"x","args":7}',
    '{"id":"x","args":[7]}',
    '{"id":"x","args":[{"t":7}]}',
    '{"id":"x","args":[{}]}',
    '{"id":"x","value":{"v":"no type"}}',
    '{"id":"x","value":"\\ud800"}',
]


def own_vectors():
    for scheme in oracle.VARIANTS:
        path = REPOSITORY / "tests" / "vectors" / "keys" / (scheme + ".jsonl")
        for line in path.read_text(encoding="ascii").splitlines():
            vector = json.loads(line)
            case = expanded(vector["in"])
            for variant, out in vector["out"].items():
                if "error" in out:
                    yield scheme, variant, case, batch.Expected(error=True, code=out["error"])
                else:
                    yield scheme, variant, case, batch.Expected(answer=out, partial=True)


def run(cli, vectors):
    """Runs vectors, grouped by how the command is called; returns (how many, how many failed)."""
    groups = {}
    for scheme, variant, case, expected in vectors:
        groups.setdefault((scheme, variant), []).append((case, expected))
    failed = 0
    for (scheme, variant), group in groups.items():
        answers = batch.run_batch(cli, scheme, variant, [json.dumps(case) for case, _ in group])
        for (case, expected), got in zip(group, answers):
            for who, answer in (("holdfast", got), ("oracle", oracle_answer(scheme, variant, case))):
                difference = batch.difference(case["id"], expected, answer)
                if difference is not None:
                    failed += 1
                    print("%s, %s %s, %s: %s" % (who, scheme, variant, case["id"], difference))
    return sum(map(len, groups.values())), failed


def oracle_answer(scheme, variant, case):
    try:
        return {"id": case["id"], **oracle.answer(scheme, variant, case)}
    except oracle.Refused as refused:
        return {"id": case["id"], "error": {"code": refused.code, "path": "", "message": str(refused)}}


def deep_line(scheme, levels):
    """A million lists inside each other, as text: Python's own JSON writer would not survive it."""
    nest = '{"t":"list","v":[' * levels + '{"t":"none"}' + "]}" * levels
    frame = '"value":%s' if scheme == "interop-value" else '"name":"n","namespace":"t","operation":"op","module":"m","qualname":"q","kwargs":[],"args":[%s]'
    return '{"id":"deep",' + frame % nest + "}"


def run_bad_lines(cli):
    """A bad line is answered by an error with the same number of lines, and never stops the stream."""
    failed = 0
    for scheme, (_, variants) in oracle.VARIANTS.items():
        lines = [*BAD_LINES, deep_line(scheme, 5_000), deep_line(scheme, 1_000_000)]
        good = {"id": "good", "value": {"t": "int", "v": "1"}, "args": [{"t": "int", "v": "1"}], "kwargs": []}
        good |= {"name": "n", "namespace": "t", "operation": "op", "module": "m", "qualname": "q"}
        answers = batch.run_batch(cli, scheme, variants[0], [*lines, json.dumps(good)])
        for line, answer in zip(lines, answers):
            if not answer.get("error", {}).get("message"):
                failed += 1
                print("%s: no error for %s" % (scheme, line[:80]))
        difference = batch.difference("good", batch.expect(scheme, variants[0], good), answers[-1])
        if difference is not None:
            failed += 1
            print("%s: a good line after bad ones: %s" % (scheme, difference))
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cli", required=True, help="the holdfast command")
    options = parser.parse_args()

    total, failed = run(options.cli, own_vectors())
    print("own vectors: %d run, %d failed" % (total, failed), flush=True)

    published = pathlib.Path(os.environ.get("HOLDFAST_SHARED_VECTORS", REPOSITORY.parent / "shared" / "vectors"))
    if published.is_dir():
        count, wrong = run(options.cli, published_vectors.load(published))
        print("published vectors: %d run, %d failed" % (count, wrong), flush=True)
        failed += wrong
    else:
        print("published vectors: none here (%s)" % published)

    wrong = run_bad_lines(options.cli)
    print("bad lines: %d failed" % wrong)
    return 1 if failed + wrong else 0


if __name__ == "__main__":
    sys.exit(main())
