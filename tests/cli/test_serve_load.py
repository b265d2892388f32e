"""holdfast serve under load: a client of Python's standard library and wrk call three servers on the same databases as fast as they can,
while two of the servers are killed with SIGKILL and started again. Nothing that was acknowledged may be lost, and no id may be given
out twice. HOLDFAST_LOAD_SECONDS sets the length: 3 without it; 60 is the measurement of docs/bench.md."""

import contextlib
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid
from pathlib import Path

from holdfast_process import HOLDFAST, free_port

SECONDS = float(os.environ.get("HOLDFAST_LOAD_SECONDS", "3"))
LONG = 120  # seconds: never reached when all is well
JSON = {"Content-Type": "application/json"}

CONFIG = """
[serve]
access-log = ""
drain = "0s"
[stores.main]
url = "sqlite:{directory}/store.db"
create-schema = true
connections = 4
[outboxes.orders]
url = "sqlite:{directory}/outbox.db"
create-schema = true
connections = 4
[sequences]
url = "sqlite:{directory}/ids.db"
create-schema = true
connections = 4
"""

# Mixed calls at full speed. What the server has acknowledged goes to a file.
SCRIPT = """
local directory, token = "{directory}", "{token}"
local threads = 0
function setup(thread) thread:set("id", threads); threads = threads + 1 end
function init() n = 0; math.randomseed(os.time() * 10 + id); log = io.open(directory .. "/wrk" .. id .. ".{name}", "w"); log:setvbuf("line") end
local fields = {{["Authorization"] = "Bearer " .. token, ["Content-Type"] = "application/json"}}
local entry = {{["Authorization"] = "Bearer " .. token, ["Cache-Control"] = "max-age=3600"}}
function request()
  n = n + 1
  local kind = n % 4
  if kind == 0 then return wrk.format("PUT", "/v1/stores/main/wrk/" .. math.random(1, 2000), entry, string.rep("x", 200)) end
  if kind == 1 then return wrk.format("GET", "/v1/stores/main/wrk/" .. math.random(1, 2000), entry) end
  if kind == 2 then return wrk.format("POST", "/v1/sequences/order.id/next", fields, '{{"count":3}}') end
  return wrk.format("POST", "/v1/outboxes/orders/events", fields, '{{"type":"wrk","payload":"{{}}"}}')
end
function response(status, headers, body)
  if status ~= 200 and status ~= 201 then return end
  if body:find('"ids"', 1, true) or body:find('"added"', 1, true) then log:write(body, "\\n") end
end
"""


# The same few keys, ids and events again and again: what is kept does not grow. Some requests are refused.
SAME_SCRIPT = """
local fields = {{["Authorization"] = "Bearer {token}", ["Content-Type"] = "application/json"}}
local entry = {{["Authorization"] = "Bearer {token}", ["Cache-Control"] = "max-age=3600"}}
local n = 0
function request()
  n = n + 1
  local kind, key = n % 8, n % 50
  if kind == 0 then return wrk.format("PUT", "/v1/stores/main/wrk/" .. key, entry, string.rep("x", 200)) end
  if kind == 1 then return wrk.format("GET", "/v1/stores/main/wrk/" .. key, entry) end
  if kind == 2 then return wrk.format("POST", "/v1/sequences/order.id/next", fields, '{{"count":3}}') end
  if kind == 3 then return wrk.format("POST", "/v1/outboxes/orders/events", fields, string.format('{{"id":"019a0000-0000-7000-8000-%012d","type":"t","payload":"p"}}', key)) end
  if kind == 4 then return wrk.format("POST", "/v1/keys?scheme=interop-value", fields, '{{"value":{{"t":"int","v":"' .. n .. '"}}}}') end
  if kind == 5 then return wrk.format("POST", "/v1/sequences/order.id/next", fields, '{{"count":"' .. n .. '"}}') end
  if kind == 6 then return wrk.format("GET", "/none/" .. n, fields) end
  return wrk.format("GET", "/healthz")
end
"""


class Server:
    """holdfast serve on a port of its own, which can be killed and started again."""

    def __init__(self, directory, name):
        self.port, self.directory, self.errors = free_port(), directory, Path(directory) / f"stderr.{name}"
        self.process = None
        self.start()

    def start(self):
        with open(self.errors, "ab") as err:
            self.process = subprocess.Popen(
                [HOLDFAST, "serve", "--config", f"{self.directory}/serve.toml", "--listen", f"127.0.0.1:{self.port}"],
                stdout=subprocess.DEVNULL, stderr=err, env={**os.environ, "STATE_DIRECTORY": str(self.directory)})
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            try:
                with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG)) as connection:
                    if call(connection, "GET", "/readyz", None, {})[0] == 200:
                        return
            except OSError:
                assert self.process.poll() is None, self.errors.read_text()
            time.sleep(0.02)
        raise AssertionError("the server did not become ready: " + self.errors.read_text())

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(LONG)

    def resident(self):
        """Kilobytes of memory in RAM, without files."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
        raise AssertionError("no RssAnon")


def call(connection, method, path, body, fields):
    connection.request(method, path, body, fields)
    answer = connection.getresponse()
    return answer.status, answer.read()


class Client(threading.Thread):
    """Calls the servers in turn. Keeps what they have acknowledged."""

    def __init__(self, number, servers, token, end):
        super().__init__()
        self.servers, self.end, self.random = servers, end, random.Random(number)
        self.name, self.fields = f"client{number}", {"Authorization": f"Bearer {token}"}
        self.puts, self.events, self.ids, self.refused, self.connections = {}, [], [], 0, {}
        self.problem = None

    def send(self, method, path, body, fields):
        """The status and the content; 0 if the server is gone."""
        port = self.random.choice(self.servers).port
        connection = self.connections.setdefault(port, http.client.HTTPConnection("127.0.0.1", port, timeout=LONG))
        try:
            return call(connection, method, path, body, {**self.fields, **fields})
        except (OSError, http.client.HTTPException):
            connection.close()
            return 0, b""

    def run(self):
        try:
            self.work()
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem
        for connection in self.connections.values():
            connection.close()

    def work(self):
        for i in range(sys.maxsize):
            # A slow machine may need longer for one of each.
            now = time.monotonic()
            if now > self.end + LONG or (now > self.end and self.puts and self.ids and self.events):
                return
            kind = i % 3
            if kind == 0:
                key, value = f"{self.name}-{i}", f"value {i}"
                status, _ = self.send("PUT", f"/v1/stores/main/python/{key}", value, {"Cache-Control": "max-age=3600"})
                if status == 204:
                    self.puts[key] = value
            elif kind == 1:
                status, content = self.send("POST", "/v1/sequences/order.id/next", '{"count":3}', JSON)
                if status == 200:
                    self.ids.extend(json.loads(content)["ids"])
            else:
                identity = str(uuid.UUID(int=self.random.getrandbits(128), version=4))
                status, _ = self.send("POST", "/v1/outboxes/orders/events", json.dumps({"id": identity, "type": "python", "payload": "{}"}), JSON)
                if status in (200, 201):
                    self.events.append(identity)
            if status not in (200, 201, 204):
                self.refused += 1


class ServeLoad(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = Path(folder.name)
        (self.directory / "serve.toml").write_text(CONFIG.format(directory=self.directory))
        added = subprocess.run([HOLDFAST, "serve", "token", "add", "--role", "app"], capture_output=True, check=True,
                               env={**os.environ, "STATE_DIRECTORY": str(self.directory)})
        self.token = added.stdout.decode().strip()

    def connect(self, server):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LONG)
        self.addCleanup(connection.close)
        return connection

    def start_server(self, name):
        server = Server(self.directory, name)
        self.addCleanup(server.kill)
        return server

    def start_wrk(self, server, name):
        script = self.directory / f"{name}.lua"
        script.write_text(SCRIPT.format(directory=self.directory, token=self.token, name=name))
        process = subprocess.Popen(["wrk", "-t1", "-c8", f"-d{max(1, round(SECONDS))}s", "--timeout", "30s", "-s", str(script), f"http://127.0.0.1:{server.port}"],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def acknowledged_by_wrk(self):
        """The ids and events of the answers that wrk has logged. The last line can be incomplete."""
        ids, events = [], []
        for file in self.directory.glob("wrk*.*"):
            for line in file.read_text().splitlines():
                try:
                    answer = json.loads(line)
                except ValueError:
                    continue
                ids.extend(answer.get("ids", []))
                if answer.get("status") == "added":
                    events.append(answer["id"])
        return ids, events

    def deliver_all(self, server):
        """Claims and settles until nothing is left. Returns the ids of all events, as often as they were delivered."""
        delivered = []
        connection = self.connect(server)
        fields = {"Authorization": f"Bearer {self.token}", **JSON}
        while True:
            status, content = call(connection, "POST", "/v1/outboxes/orders/claims", '{"lane":0,"most":500,"lease":"10m"}', fields)
            self.assertEqual(status, 200, content)
            claim = json.loads(content)
            events = claim["events"]
            if not events:
                return delivered
            settled = {"lane": 0, "fence": claim["fence"],
                       "events": [{"id": event["id"], "key": event.get("key", ""), "outcome": "done"} for event in events]}
            status, content = call(connection, "POST", "/v1/outboxes/orders/settlements", json.dumps(settled), fields)
            self.assertEqual(status, 200, content)
            delivered.extend(event["id"] for event in events)

    def test_nothing_acknowledged_is_lost_and_no_id_repeats(self):
        servers = [self.start_server(name) for name in ("a", "b", "steady")]
        steady = servers[2]
        end = time.monotonic() + SECONDS
        clients = [Client(number, servers, self.token, end) for number in range(3)]
        loads = [self.start_wrk(steady, "steady"), self.start_wrk(servers[0], "killed")]
        for client in clients:
            client.start()
        kills, samples = 0, []
        while time.monotonic() < end:
            time.sleep(min(1.0, SECONDS / 6))
            servers[kills % 2].kill()
            servers[kills % 2].start()
            kills += 1
            samples.append(steady.resident())
        for client in clients:
            client.join(2 * LONG)
            self.assertFalse(client.is_alive())
            self.assertIsNone(client.problem)
        reports = [load.communicate(timeout=LONG)[0].decode() for load in loads]

        ids, events = self.acknowledged_by_wrk()
        for client in clients:
            ids += client.ids
            events += client.events
        puts = {key: value for client in clients for key, value in client.puts.items()}
        self.assertGreater(kills, 0)
        self.assertTrue(ids and events and puts, reports)
        self.assertEqual(len(ids), len(set(ids)), "an id was given out twice")

        connection = self.connect(steady)
        for key, value in puts.items():
            status, content = call(connection, "GET", f"/v1/stores/main/python/{key}", None, {"Authorization": f"Bearer {self.token}"})
            self.assertEqual((status, content.decode()), (200, value), f"the put of {key} was acknowledged")
        delivered = self.deliver_all(steady)
        self.assertEqual(set(events) - set(delivered), set(), "events were acknowledged, and not delivered")
        self.assertEqual(len(delivered), len(set(delivered)), "no lease has ended, so each event is delivered once")

        # The caches of the connections fill at first. Later it stays: 16 MiB are a leak of a few bytes in each request.
        middle = samples[len(samples) // 2]
        self.assertLess(samples[-1] - middle, 16 * 1024, samples)
        if "HOLDFAST_LOAD_SECONDS" in os.environ:
            refused = sum(client.refused for client in clients)
            print(f"{kills} kills; {len(ids)} ids, {len(events)} events, {len(puts)} puts acknowledged; {refused} calls of the client refused or cut; "
                  f"memory {samples[0]}, {middle}, {samples[-1]} kB at the first kill, in the middle, at the end", file=sys.stderr)
            print("\n".join(line for report in reports for line in report.splitlines() if "requests in" in line), file=sys.stderr)


    def run_wrk(self, server, script):
        """Calls the server for a second. Returns how many requests were answered."""
        done = subprocess.run(["wrk", "-t1", "-c8", "-d1s", "--timeout", "30s", "-s", str(script), f"http://127.0.0.1:{server.port}"],
                              capture_output=True, check=True, timeout=LONG)
        return int(re.search(rb"(\d+) requests in", done.stdout).group(1))

    def test_memory_does_not_grow_with_the_requests(self):
        server = self.start_server("same")
        script = self.directory / "same.lua"
        script.write_text(SAME_SCRIPT.format(token=self.token))
        requests = 0
        while requests < 20_000:  # the threads, their arenas, and the caches of the connections
            requests += self.run_wrk(server, script)
        first, requests, samples = server.resident(), 0, []
        while requests < 40_000 or (SECONDS > 3 and len(samples) < SECONDS):
            requests += self.run_wrk(server, script)
            samples.append(server.resident() - first)
        growth = samples[-1] * 1024 / requests
        if "HOLDFAST_LOAD_SECONDS" in os.environ:
            print(f"{requests} requests; memory {first} kB, then more by {samples} kB: {growth:.1f} bytes for each request", file=sys.stderr)
        self.assertLess(growth, 50, f"{requests} requests, from {first} kB: {samples}")


if __name__ == "__main__":
    unittest.main()
