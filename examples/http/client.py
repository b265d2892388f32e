#!/usr/bin/env python3
"""Uses `holdfast serve` from Python, with the standard library only.

HOLDFAST_URL is the address of the server. HOLDFAST_TOKEN is a token with the role app, and
HOLDFAST_VIEWER one with the role viewer; `holdfast serve token add` makes them.
"""

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request

URL = os.environ.get("HOLDFAST_URL", "http://127.0.0.1:7360")
TOKEN = os.environ["HOLDFAST_TOKEN"]
VIEWER = os.environ["HOLDFAST_VIEWER"]


def send(method, path, content=None, token=TOKEN, headers=None):
    """Sends a request and returns its answer. Repeats it while the server asks for that, which is
    safe: an event has an id, ids leave a gap, and an unsettled claim ends with its lease."""
    request = urllib.request.Request(URL + path, method=method, headers=headers or {})
    request.add_header("Authorization", "Bearer " + token)
    if content is not None:
        request.data = json.dumps(content).encode()
        request.add_header("Content-Type", "application/json")
    for attempt in range(5):
        try:
            return urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as answer:
            problem = answer.read().decode()
            if answer.code not in (429, 503, 504) or attempt == 4:
                raise RuntimeError(f"{method} {path}: {answer.code} {problem}") from None
            time.sleep(float(answer.headers.get("Retry-After", 1)))


def call(method, path, content=None, **options):
    """The JSON of an answer."""
    with send(method, path, content, **options) as answer:
        return json.loads(answer.read() or b"null")


# A key is made from the arguments of a call, the same in every language.
arguments = [{"t": "str", "v": "FR"}]
key = call("POST", "/v1/keys?scheme=failover", {"name": "country", "args": arguments})["raw_key"]
print("key:", key)

# An answer is kept under its name and key for an hour. The payload may be any bytes.
entry = "/v1/stores/main/country/" + urllib.parse.quote(key, safe="")
call("PUT", entry, {"capital": "Paris"}, headers={"Cache-Control": "max-age=3600"})
print("stored:", call("GET", entry)["capital"])


# A point does both: it makes the key, keeps what the upstream answers, and has the last good
# answer when the upstream fails.
def ask_capital(upstream):
    try:
        answer = upstream()
    except OSError:
        kept = call("POST", "/v1/points/capital/recover", {"args": arguments, "cause": "failed"})
        return kept["payload"]["capital"], kept["asOf"]
    call("POST", "/v1/points/capital/answers", {"args": arguments, "payload": answer})
    return answer["capital"], "now"


def broken():
    raise ConnectionError("the upstream is down")


print("upstream works:", *ask_capital(lambda: {"capital": "Paris"}))
print("upstream fails:", *ask_capital(broken))

# Ids are unique across all processes.
print("ids:", *call("POST", "/v1/sequences/order.id/next", {"count": 3})["ids"])

# With an id or an Idempotency-Key, an event is published once, however often it is sent.
event = {"type": "order.paid", "key": "order-7", "payload": {"euro": 30}}
for _ in range(2):
    receipt = call("POST", "/v1/outboxes/main/events", event,
                   headers={"Idempotency-Key": "payment-4711"})
    print("published:", receipt["status"])

# A worker repeats this. `wait` lets the request wait until there is an event.
claim = call("POST", "/v1/outboxes/main/claims", {"lane": 0, "lease": "30s", "wait": "20s"})
settled = []
for event in claim["events"]:
    print("claimed:", event["type"], event["key"], event["payload"]["euro"])
    settled.append({"id": event["id"], "key": event["key"], "outcome": "done"})
if settled:
    answer = call("POST", "/v1/outboxes/main/settlements",
                  {"lane": 0, "fence": claim["fence"], "events": settled})
    print("settled:", *(event["result"] for event in answer["events"]))


def follow():
    """The events of the server: pairs of kind and content. The stream ends when the server stops,
    and after 15 minutes; then call it again."""
    kind = ""
    with send("GET", "/v1/events", token=VIEWER) as stream:
        for line in stream:
            field, _, value = line.decode().strip().partition(": ")
            if field == "event":
                kind = value
            elif field == "data":
                yield kind, json.loads(value)


# The state is sampled once a second: wait until it has the point.
for kind, state in follow():
    points = state["points"] if kind == "state" else []
    if breaker := [point["breaker"] for point in points if point["name"] == "capital"]:
        print("breaker:", *breaker)
        break
