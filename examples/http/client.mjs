// Uses `holdfast serve` from JavaScript, with fetch: Node.js 18 or later, Deno, Bun.
//
// HOLDFAST_URL is the address of the server. HOLDFAST_TOKEN is a token with the role app, and
// HOLDFAST_VIEWER one with the role viewer; `holdfast serve token add` makes them.

const { HOLDFAST_URL = "http://127.0.0.1:7360", HOLDFAST_TOKEN, HOLDFAST_VIEWER } = process.env;

/// Sends a request and returns its answer. Repeats it while the server asks for that, which is
/// safe: an event has an id, ids leave a gap, and an unsettled claim ends with its lease.
async function send(method, path, content, { token = HOLDFAST_TOKEN, headers = {} } = {}) {
  const request = { method, headers: { ...headers, Authorization: `Bearer ${token}` } };
  if (content !== undefined) {
    request.body = JSON.stringify(content);
    request.headers["Content-Type"] = "application/json";
  }
  for (let attempt = 1; ; ++attempt) {
    const answer = await fetch(HOLDFAST_URL + path, request);
    if (answer.ok) return answer;
    const problem = await answer.text();
    if (![429, 503, 504].includes(answer.status) || attempt === 5)
      throw new Error(`${method} ${path}: ${answer.status} ${problem}`);
    const seconds = Number(answer.headers.get("Retry-After") ?? 1);
    await new Promise((resume) => setTimeout(resume, seconds * 1000));
  }
}

/// The JSON of an answer.
async function call(method, path, content, options) {
  const text = await (await send(method, path, content, options)).text();
  return text ? JSON.parse(text) : null;
}

// A key is made from the arguments of a call, the same in every language.
const args = [{ t: "str", v: "FR" }];
const { raw_key: key } = await call("POST", "/v1/keys?scheme=failover", { name: "country", args });
console.log("key:", key);

// An answer is kept under its name and key for an hour. The payload may be any bytes.
const entry = `/v1/stores/main/country/${encodeURIComponent(key)}`;
await call("PUT", entry, { capital: "Paris" }, { headers: { "Cache-Control": "max-age=3600" } });
console.log("stored:", (await call("GET", entry)).capital);

// A point does both: it makes the key, keeps what the upstream answers, and has the last good
// answer when the upstream fails.
async function askCapital(upstream) {
  let answer;
  try {
    answer = await upstream();
  } catch {
    const kept = await call("POST", "/v1/points/capital/recover", { args, cause: "failed" });
    return [kept.payload.capital, kept.asOf];
  }
  await call("POST", "/v1/points/capital/answers", { args, payload: answer });
  return [answer.capital, "now"];
}

async function broken() {
  throw new Error("the upstream is down");
}

console.log("upstream works:", ...(await askCapital(async () => ({ capital: "Paris" }))));
console.log("upstream fails:", ...(await askCapital(broken)));

// Ids are unique across all processes.
const { ids } = await call("POST", "/v1/sequences/order.id/next", { count: 3 });
console.log("ids:", ...ids);

// With an id or an Idempotency-Key, an event is published once, however often it is sent.
for (let i = 0; i < 2; ++i) {
  const event = { type: "order.paid", key: "order-7", payload: { euro: 30 } };
  const headers = { "Idempotency-Key": "payment-4711" };
  const receipt = await call("POST", "/v1/outboxes/main/events", event, { headers });
  console.log("published:", receipt.status);
}

// A worker repeats this. `wait` lets the request wait until there is an event.
const range = { lane: 0, lease: "30s", wait: "20s" };
const claim = await call("POST", "/v1/outboxes/main/claims", range);
const settled = [];
for (const { id, type, key, payload } of claim.events) {
  console.log("claimed:", type, key, payload.euro);
  settled.push({ id, key, outcome: "done" });
}
if (settled.length > 0) {
  const settlement = { lane: 0, fence: claim.fence, events: settled };
  const { events } = await call("POST", "/v1/outboxes/main/settlements", settlement);
  console.log("settled:", ...events.map((event) => event.result));
}

/// The events of the server: pairs of kind and content. The stream ends when the server stops, and
/// after 15 minutes; then call it again.
async function* follow() {
  const stream = await send("GET", "/v1/events", undefined, { token: HOLDFAST_VIEWER });
  const decoder = new TextDecoder();
  let kind = "";
  let rest = "";
  for await (const bytes of stream.body) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("event: ")) kind = line.slice(7);
      if (line.startsWith("data: ")) yield [kind, JSON.parse(line.slice(6))];
    }
  }
}

// The state is sampled once a second: wait until it has the point.
for await (const [kind, state] of follow()) {
  const point = kind === "state" && state.points.find(({ name }) => name === "capital");
  if (!point) continue;
  console.log("breaker:", point.breaker);
  break;
}
