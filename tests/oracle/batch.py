"""Runs `holdfast key batch` and compares what it prints with what the oracle expects."""

import json
import subprocess

import oracle


class Expected:
    """What one case must give: an answer (field -> value), or an error (code and path where they are certain, else None).

    `partial`: the answer has more fields than are known here (published vectors give only some)."""

    def __init__(self, answer=None, error=False, code=None, path=None, partial=False):
        self.answer = answer
        self.error = error
        self.code = code
        self.path = path
        self.partial = partial


def run_batch(cli, scheme, variant, lines):
    """Pipes lines through the command; returns one parsed answer per line."""
    option, _ = oracle.VARIANTS[scheme]
    command = [cli, "key", "batch", "--scheme", scheme] + ([option, variant] if option else [])
    done = subprocess.run(command, input=("\n".join(lines) + "\n").encode(), capture_output=True, timeout=60)
    if done.returncode != 0:
        raise SystemExit("%s: exit %d\n%s" % (" ".join(command), done.returncode, done.stderr.decode(errors="replace")[:2000]))
    answers = done.stdout.decode().split("\n")
    if answers.pop() != "" or len(answers) != len(lines):
        raise SystemExit("%s: %d lines in, %d out" % (" ".join(command), len(lines), len(answers)))
    return [json.loads(a) for a in answers]


def difference(case_id, expected, got):
    """One line that says how an answer differs from what was expected; None if it does not."""
    if got.get("id") != case_id:
        return "id %r became %r" % (case_id, got.get("id"))
    error = got.get("error")
    if expected.error:
        if error is None:
            return "accepted, must be refused: %s" % _short(got)
        if set(got) != {"id", "error"} or set(error) != {"code", "path", "message"}:
            return "an error has id, code, path and message: %s" % _short(got)
        if not error["message"]:
            return "an error without a message: %s" % _short(got)
        if expected.code is not None and error["code"] != expected.code:
            return "refused as %s, must be %s: %s" % (error["code"], expected.code, _short(error))
        if expected.path is not None and error["path"] != expected.path:
            return "refused at %r, must be at %r: %s" % (error["path"], expected.path, _short(error))
        return None
    if error is not None:
        return "refused, must be accepted: %s" % _short(error)
    if set(got) != {"id", *expected.answer} and not expected.partial:
        return "fields %s, must be %s" % (sorted(got), sorted(["id", *expected.answer]))
    for field, value in expected.answer.items():
        if got.get(field) != value:
            return "%s: got %s, must be %s" % (field, _short(got.get(field)), _short(value))
    return None


def expect(scheme, variant, case):
    """What the oracle says about a case."""
    try:
        return Expected(answer=oracle.answer(scheme, variant, case))
    except oracle.Refused as refused:
        return Expected(error=True, code=refused.code)


def _short(what):
    text = json.dumps(what)
    return text if len(text) <= 400 else text[:200] + " ... " + text[-100:]
