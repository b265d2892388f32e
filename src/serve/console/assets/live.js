// The events of the server: one stream for all tabs of a browser. The tab that holds a Web Lock
// reads it, and passes the events on by a BroadcastChannel.
//
//   waiting    another tab reads
//   reading    this tab reads; without an event or a comment for `silence` the stream is lost
//   lost       tries again, after 1 s at first and 15 s at most

import { get, url } from './api.js';

const silence = 40_000;
const longest_pause = 15_000;

const channel = new BroadcastChannel('holdfast');
const listeners = new Set();

/// What every tab knows. `lost` is the time since which the stream is lost, or null.
export const live = { status: null, lost: null };

let is_reader = false;
let last_id = '';
let on_session_end = () => {};
let stopping = new AbortController();

/// `listener(kind, data)`: `state`, `incident`, `job`, `audit`, `lost`, `found`. Returns a function
/// that ends it.
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function deliver(message) {
  if (message.kind === 'state') live.status = message.data;
  if (message.kind === 'lost') live.lost = message.data;
  if (message.kind === 'found') live.lost = null;
  if (message.kind === 'signed-out') on_session_end();
  for (const listener of listeners) listener(message.kind, message.data);
}

/// Tells all tabs.
export function announce(kind, data = null) {
  deliver({ kind, data });
  channel.postMessage({ kind, data });
}

channel.onmessage = ({ data: message }) => {
  if (message.kind !== 'ask') {
    deliver(message);
    return;
  }
  // A tab was opened.
  if (is_reader && live.status) channel.postMessage({ kind: 'state', data: live.status });
  if (is_reader && live.lost) channel.postMessage({ kind: 'lost', data: live.lost });
};

export function start_live(session_end) {
  on_session_end = session_end;
  stop_live();
  stopping = new AbortController();
  const { signal } = stopping;
  channel.postMessage({ kind: 'ask' });
  // Browsers have locks only in pages that came over TLS or from this machine.
  if (navigator.locks)
    navigator.locks
      .request('holdfast-events', { signal }, () => read_until_stopped(signal))
      .catch(() => {});
  else read_until_stopped(signal);
}

export function stop_live() {
  stopping.abort();
}

const pause = (milliseconds, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });

async function read_until_stopped(signal) {
  is_reader = true;
  let failures = 0;
  while (!signal.aborted) {
    let goodbye = null;
    try {
      goodbye = await read_stream(signal, () => {
        failures = 0;
        if (live.lost) announce('found');
      });
    } catch (failure) {
      if (signal.aborted) break;
      if (failure.status === 401) {
        announce('signed-out');
        break;
      }
    }
    if (signal.aborted) break;
    if (goodbye === null && !live.lost) announce('lost', new Date().toISOString());
    failures += 1;
    await pause(goodbye ?? Math.min(longest_pause, 1000 * 2 ** Math.min(failures - 1, 4)), signal);
  }
  is_reader = false;
}

/// Reads until the stream ends. Returns the pause that the server asked for, or null.
async function read_stream(signal, on_open) {
  const watchdog = new AbortController();
  const abort = () => watchdog.abort();
  signal.addEventListener('abort', abort);
  let timer = setTimeout(abort, silence);
  try {
    const answer = await fetch('/v1/events', {
      signal: watchdog.signal,
      cache: 'no-store',
      headers: last_id ? { 'Last-Event-ID': last_id } : {}
    });
    if (!answer.ok) throw Object.assign(new Error('refused'), { status: answer.status });
    on_open();
    let text = '';
    let goodbye = null;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return goodbye;
      clearTimeout(timer);
      timer = setTimeout(abort, silence);
      text += value;
      const blocks = text.split('\n\n');
      text = blocks.pop();
      for (const block of blocks) goodbye = take_event(block) ?? goodbye;
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

/// Returns the pause of an event `bye`.
function take_event(block) {
  const fields = {};
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
  }
  if (fields.id) last_id = fields.id;
  if (!fields.event || !fields.data) return null;
  const content = JSON.parse(fields.data);
  if (fields.event === 'bye') return content.retryMs ?? 1000;
  announce(fields.event, content);
  return null;
}

/// Asks once, for a page that needs the state before the first event.
export async function current_status() {
  live.status ??= await get(url`/v1/status`);
  return live.status;
}
