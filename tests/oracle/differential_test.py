#!/usr/bin/python3
"""Fresh random cases through `holdfast key batch`, in every scheme, dialect and style, compared with the oracle.

    differential_test.py --cli PATH [--seed N] [--cases N] [--scheme S]

The seed is printed; --seed replays a run.
"""

import argparse
import decimal
import json
import random
import secrets
import sys
import time

import batch
import oracle
from case_generator import CaseGenerator

SHOWN_DIFFERENCES = 5


class Round:
    """The cases of one scheme, with what every variant of it must answer."""

    def __init__(self, scheme, seed, count):
        rng = random.Random("%s/%d" % (scheme, seed))
        generator = CaseGenerator(scheme, rng)
        self.scheme = scheme
        self.cases, self.lines, self.faults = [], [], []
        for number in range(count):
            if rng.random() < 0.08:
                case, code, path = generator.broken_case(number)
                self.faults.append((code, path))
            else:
                case = generator.case(number)
                self.faults.append(None)
            self.cases.append(case)
            self.lines.append(generator.line(case))

    def expectations(self, variant):
        for case, fault in zip(self.cases, self.faults):
            if fault is None:
                expected = batch.expect(self.scheme, variant, case)
                expected.code = None  # one of several faults may be found first
                yield expected
                continue
            code, path = fault
            assert self._oracle_refuses(case, variant), "this fault is none: %s" % case
            if self._refused_before_arguments(case, variant):
                code, path = None, None
            yield batch.Expected(error=True, code=code, path=path)

    def _oracle_refuses(self, case, variant):
        try:
            oracle.answer(self.scheme, variant, case)
        except (oracle.Refused, ValueError, KeyError, TypeError, decimal.InvalidOperation):
            return True
        return False

    @staticmethod
    def _refused_before_arguments(case, variant):
        return variant == "current" and case.get("serializer") == ""


def compare(cases, expected, answers):
    found = []
    for case, wanted, got in zip(cases, expected, answers):
        difference = batch.difference(case["id"], wanted, got)
        if difference is not None:
            found.append((case, difference))
    return found


def assert_that_it_can_fail(cases, expected, answers):
    """Spoils one expectation of each kind: a comparison that does not notice would prove nothing."""
    for number, wanted in enumerate(expected):
        if wanted.error:
            continue
        for field in wanted.answer:
            spoilt = dict(wanted.answer)
            spoilt[field] = spoilt[field][:-1] + ("0" if spoilt[field][-1:] != "0" else "1")
            assert compare(cases[number : number + 1], [batch.Expected(answer=spoilt)], answers[number : number + 1]), "a wrong %s passed" % field
        as_error = [batch.Expected(error=True)]
        assert compare(cases[number : number + 1], as_error, answers[number : number + 1]), "an answer passed as an error"
        break
    for number, wanted in enumerate(expected):
        if wanted.error:
            as_answer = [batch.Expected(answer={})]
            assert compare(cases[number : number + 1], as_answer, answers[number : number + 1]), "an error passed as an answer"
            break


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cli", required=True, help="the holdfast command")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--cases", type=int, default=20_000, help="per scheme")
    parser.add_argument("--scheme", choices=list(oracle.VARIANTS), default=None)
    options = parser.parse_args()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print("seed %d (replay: --seed %d)" % (seed, seed), flush=True)

    failures = 0
    for scheme, (_, variants) in oracle.VARIANTS.items():
        if options.scheme not in (None, scheme):
            continue
        started = time.monotonic()
        cases = Round(scheme, seed, options.cases)
        for variant in variants:
            expected = list(cases.expectations(variant))
            answers = batch.run_batch(options.cli, scheme, variant, cases.lines)
            found = compare(cases.cases, expected, answers)
            failures += len(found)
            for case, difference in found[:SHOWN_DIFFERENCES]:
                text = json.dumps(case)
                print("%s %s: %s\n  %s" % (scheme, variant, difference, text if len(text) < 800 else text[:800] + " ..."))
            if not found:
                assert_that_it_can_fail(cases.cases, expected, answers)
            refused = sum(e.error for e in expected)
            print("%s %s: %d cases, %d of them refused, %d differ" % (scheme, variant, len(expected), refused, len(found)), flush=True)
        print("%s: %.1f s" % (scheme, time.monotonic() - started), flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
