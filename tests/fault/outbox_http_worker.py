"""A worker over HTTP: claims events, writes each to a file, and settles it. Killed by the test.

Arguments: host:port of the server, file. A line: key, payload, id.
"""

import http.client
import json
import os
import sys
import time


def main():
    host, ledger_name = sys.argv[1], sys.argv[2]
    ledger = os.open(ledger_name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    connection = None

    def post(path, body):
        nonlocal connection
        if connection is None:
            connection = http.client.HTTPConnection(host, timeout=30)
        connection.request("POST", "/v1/outboxes/orders/" + path, json.dumps(body),
                           {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
        return response.status, json.loads(text)

    while True:
        try:
            status, claim = post("claims", {"most": 5, "run": 10, "lease": "2s", "wait": "5s"})
            while status == 200 and claim.get("events"):
                for event in claim["events"]:
                    line = "%s %s %s\n" % (event["key"], event["payload"], event["id"])
                    os.write(ledger, line.encode())
                status, settled = post("settlements", {
                    "fence": claim["fence"],
                    "events": [{"id": event["id"], "key": event["key"], "outcome": "done"}
                               for event in claim["events"]],
                    "next": {"run": 10, "lease": "2s"}})
                claim = settled.get("next", {})
            if status != 200:
                time.sleep(0.05)
        except (OSError, http.client.HTTPException, ValueError):
            if connection is not None:
                connection.close()
            connection = None
            time.sleep(0.05)


main()
