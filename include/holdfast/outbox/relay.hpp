#pragma once

/// \file
/// Handlers for a worker that pass events on: to a file or pipe, to a Redis stream; and what one needs to post them over HTTP. Each is a page
/// over the public API: take them as they are, or as a beginning.

#include <holdfast/outbox/outcome.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>
#include <holdfast/worker.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::relay {

/// The event in one line of JSON: its entry (docs/outbox.md), with `attempts`, `deliveries` and `fence`.
[[nodiscard]] HOLDFAST_API std::string to_json(const delivery& what);

struct json_lines_options {
  bool sync = false;  ///< every line is on the disk before its event is acknowledged (fdatasync)
};
/// Appends events to a file or a pipe, one line each, in one write: lines of several processes do not mix in a file. An event that is
/// delivered again is written again; its `id` says so. When the reader of a pipe went away the outcome is throttled, tried again after a
/// second and counted by nobody; SIGPIPE is yours to ignore. Throws errc::unavailable when the file cannot be opened.
[[nodiscard]] HOLDFAST_API event_handler json_lines(const std::string& file, json_lines_options how = {});

/// Appends events to a Redis stream: fields `id`, `type`, `key` and `event` (as to_json). Of a stream with a limit the oldest entries go, about
/// (MAXLEN ~). An event that is delivered again is appended again.
[[nodiscard]] HOLDFAST_API event_handler redis_stream(redis::client to, std::string stream, std::size_t limit = 0);

struct cloud_event_options {
  /// Whether the event's own credentials are passed on: Authorization, Proxy-Authorization, Cookie, Cookie2, Set-Cookie, Set-Cookie2, X-Api-Key
  /// and X-Auth-Token. For relays whose publishers and receiver trust each other: a publisher chooses the credentials of the request, and the
  /// receiver gets those of the publisher.
  bool credentials = false;
};
/// The headers of a CloudEvent 1.0 in binary mode, whose body is the payload: `ce-id`, `ce-type`, `ce-source`, `ce-time`..., the event's own
/// (`traceparent`), the fence as `ce-fence`, and `Idempotency-Key`, the event's id: a receiver that keeps it applies an event once. Values of
/// `ce-` headers are percent-encoded, as the HTTP binding of CloudEvents says.
///
/// Not taken from the event, in whatever case and with `_` for `-`: what describes the event or its body (`ce-`..., Content-Type,
/// Content-Encoding, Idempotency-Key); what belongs to the connection (Host, Connection, Content-Length, Transfer-Encoding, TE, Trailer,
/// Upgrade, Expect, Keep-Alive, Proxy-...); what proxies say (Forwarded, X-Forwarded-..., X-Real-IP, Via, Proxy, X-HTTP-Method-Override and
/// its kin, X-Original-URL, X-Rewrite-URL); and credentials.
[[nodiscard]] HOLDFAST_API std::map<std::string, std::string> cloud_event_headers(const delivery& what, std::string_view source,
                                                                                  cloud_event_options options = {});

/// What an HTTP status means for an event:
///
/// | status | outcome |
/// | --- | --- |
/// | 2xx | done |
/// | 429, and 503 with Retry-After | throttled, for that long (a minute unless said, at most an hour) |
/// | 400, 405, 410, 411, 413, 414, 415, 422, 431 | permanent: the same request will never do |
/// | any other | retry: also 401, 403 and 404, which somebody can put right |
[[nodiscard]] HOLDFAST_API outcome outcome_of_status(int status, std::string_view retry_after = {});

}  // namespace HOLDFAST_NAMESPACE::relay
