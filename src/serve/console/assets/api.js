// Calls of the public API. Its errors are problem details (RFC 9457).

export class problem extends Error {
  constructor(status, details) {
    super(details.detail ?? details.title ?? `the server answered ${status}`);
    this.status = status;
    this.in_doubt = details.inDoubt ?? false;
  }
}

let on_session_end = () => {};

/// `listener` is called when the server does not know the caller any more.
export function watch_session(listener) {
  on_session_end = listener;
}

/// A path whose parameters are encoded: url`/v1/points/${name}`.
export function url(parts, ...values) {
  return parts.reduce((path, part, i) => path + encodeURIComponent(values[i - 1]) + part);
}

/// Adds parameters to a path. Empty ones are left out.
function with_query(path, parameters) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value));
  return query.size ? `${path}?${query}` : path;
}

async function call(method, path, body, signal) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      signal,
      cache: 'no-store',
      // With a session the server wants the type also of a request without content.
      headers: method === 'GET' ? {} : { 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body)
    });
  } catch (failure) {
    if (failure.name === 'AbortError') throw failure;
    throw new problem(0, { detail: 'the server cannot be reached; repeat when it runs' });
  }
  const text = await answer.text();
  const is_json = /json/.test(answer.headers.get('Content-Type') ?? '');
  const content = is_json && text ? JSON.parse(text) : text;
  if (answer.ok) return content;
  const failure = new problem(answer.status, is_json ? content : {});
  if (answer.status === 401 && !path.startsWith('/v1/session')) on_session_end();
  throw failure;
}

export const get = (path, signal, parameters = {}) =>
  call('GET', with_query(path, parameters), undefined, signal);
export const post = (path, body = {}) => call('POST', path, body);
export const post_empty = (path) => call('POST', path);
export const remove = (path) => call('DELETE', path);
