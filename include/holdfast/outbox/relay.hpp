#pragma once

/// \file
/// Handlers that pass events on: to a file or pipe, or to a Redis stream. Also helpers to post
/// events over HTTP with a client of your choice.

#include <holdfast/outbox/outcome.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>
#include <holdfast/worker.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::relay {

/// Returns the event as one line of JSON: its entry (see docs/outbox.md) with `attempts`,
/// `deliveries` and `fence`.
[[nodiscard]] HOLDFAST_API std::string to_json(const delivery& delivery);

struct json_lines_options {
  /// Sync each line to the disk (fdatasync) before its event is acknowledged.
  bool sync = false;
};
/// Appends each event to a file or pipe as one line of JSON. `-` is standard output.
///
/// Each line is one write, so lines of several processes do not mix in a file. If a write ends in
/// the middle of a line, because the disk is full, that half line is removed, or the next line
/// begins with a line break: a reader may see an empty or cut line, but every acknowledged event is
/// a whole one. An event that is delivered again is written again, with the same `id`. If the
/// reader of a pipe is gone, the outcome is `throttled` for a second, which does not count as an
/// attempt; ignoring SIGPIPE is up to the application. Throws errc::unavailable if the file cannot
/// be opened.
[[nodiscard]] HOLDFAST_API event_handler json_lines(const std::string& file,
                                                    json_lines_options options = {});

/// Appends each event to a Redis stream, with the fields `id`, `type`, `key` and `event` (see
/// to_json). `limit` is the approximate length of the stream (MAXLEN ~); 0: no limit. An event that
/// is delivered again is appended again.
[[nodiscard]] HOLDFAST_API event_handler redis_stream(redis::client client, std::string stream,
                                                      std::size_t limit = 0);

struct cloud_event_options {
  /// Pass on the credentials of the event: the headers Authorization, Proxy-Authorization, Cookie,
  /// Cookie2, Set-Cookie, Set-Cookie2, X-Api-Key and X-Auth-Token. Enable it only if publishers and
  /// receiver trust each other: the publisher chooses the credentials of the request, and the
  /// receiver sees the credentials of the publisher.
  bool credentials = false;
};
/// Returns the HTTP headers of a CloudEvent 1.0 in binary mode. The body is the payload.
///
/// They are `ce-id`, `ce-type`, `ce-source`, `ce-time` and so on, the headers of the event (for
/// example `traceparent`), the fence as `ce-fence`, and the id of the event as `Idempotency-Key`. A
/// receiver that remembers the key applies an event once. The values of `ce-` headers are
/// percent-encoded, as the HTTP binding of CloudEvents requires.
///
/// Some headers of the event are dropped. Names are compared without regard to case, and `_` counts
/// as `-`:
///
/// - about the event or its body: `ce-`..., Content-Type, Content-Encoding, Idempotency-Key
/// - about the connection: Host, Connection, Content-Length, Transfer-Encoding, TE, Trailer,
///   Trailers, Upgrade, Expect, Keep-Alive, HTTP2-Settings, Proxy-...
/// - set by proxies: Forwarded, X-Forwarded-..., X-Real-IP, Via, Proxy, X-HTTP-Method,
///   X-HTTP-Method-Override, X-Method-Override, X-Original-URL, X-Rewrite-URL
/// - credentials; see cloud_event_options
[[nodiscard]] HOLDFAST_API std::map<std::string, std::string> cloud_event_headers(
    const delivery& delivery, std::string_view source, cloud_event_options options = {});

/// Returns what an HTTP status means for an event:
///
/// | status | outcome |
/// | --- | --- |
/// | 2xx | done |
/// | 429, and 503 with Retry-After | throttled for that time, at most an hour; without a time, a minute |
/// | 400, 405, 410, 411, 413, 414, 415, 422, 431 | permanent: the same request will always fail |
/// | any other | retry; this includes 401, 403 and 404, which an operator can fix |
[[nodiscard]] HOLDFAST_API outcome outcome_of_status(int status, std::string_view retry_after = {});

}  // namespace HOLDFAST_NAMESPACE::relay
