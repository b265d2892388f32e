#pragma once

/// \file
/// The streams of GET /v1/events, as Server-Sent Events.
///
/// The last events are kept, so that a client that was away can continue: it sends the id of the
/// last event it saw as Last-Event-ID. An id is `<start>-<number>`; the first part differs after
/// each start of the server. A client whose id is unknown, or too old, gets the last `state`
/// instead, which is complete by itself.
///
/// | kind | role | data |
/// | --- | --- | --- |
/// | state | viewer | the object of GET /v1/status |
/// | incident, job | viewer | the object that changed |
/// | audit | admin | an entry of the audit log |
/// | bye | viewer | the server stops, or the stream is older than `max_age`; `retry` says when to come back |

#include "serve/answer_stream.hpp"
#include "serve/auth/caller.hpp"
#include "serve/http_server.hpp"
#include "serve/live/event_sink.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

struct event_hub_options {
  std::size_t max_streams = 64;
  std::size_t kept_events = 1'000;
  /// Of the kept events together.
  std::size_t kept_bytes = std::size_t{4} << 20U;
  /// Bytes that may wait for a client; a longer event is dropped.
  std::size_t max_queued = std::size_t{1} << 20U;
  std::chrono::milliseconds heartbeat{15'000};
  /// A stream ends after this time, so that a client with a revoked token is refused when it
  /// returns.
  std::chrono::milliseconds max_age{15 * 60'000};
};

struct event_hub_counts {
  std::uint64_t streams = 0;  ///< open now
  std::uint64_t refused = 0;  ///< answered with 503
  std::uint64_t published = 0;
  std::uint64_t too_large = 0;  ///< events that were dropped
  std::uint64_t resumed = 0;    ///< streams that continued after a known id
};

/// Thread-safety: may be called from any thread. No function waits for a client.
class event_hub final : public event_sink {
 public:
  explicit event_hub(event_hub_options options = {});

  void publish(std::string_view kind, std::string json) noexcept override;

  /// Answers a request for the stream: 503 beyond `max_streams`, 403 for a caller with a tenant,
  /// because events are not separated by tenants.
  void subscribe(const caller& client, std::optional<std::string_view> last_event_id,
                 responder answer);
  /// Ends streams that are too old. Called about once a second.
  void end_old_streams() noexcept;
  /// Sends `bye` and ends all streams. New ones get 503.
  void shut_down() noexcept;

  [[nodiscard]] event_hub_counts counts();

 private:
  struct kept_event {
    std::uint64_t number = 0;
    bool for_admins = false;
    bool is_state = false;
    std::string text{};  // as it is sent; empty if a later state replaces it
  };
  struct subscriber {
    answer_stream stream;
    bool admin = false;
    std::chrono::steady_clock::time_point end{};
  };

  void remember(kept_event event);
  void remove_closed();
  /// What a new stream gets first.
  [[nodiscard]] std::string first_events(std::optional<std::string_view> last_event_id, bool admin);
  [[nodiscard]] std::optional<std::uint64_t> number_of(std::string_view id) const;

  const event_hub_options options_;
  const std::string start_;  // the first part of the ids
  std::mutex mutex_{};
  std::uint64_t last_number_ = 0;
  std::deque<kept_event> events_{};  // with consecutive numbers
  std::size_t event_bytes_ = 0;
  std::string last_state_{};
  std::vector<subscriber> subscribers_{};
  event_hub_counts counts_{};
  bool ended_ = false;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
