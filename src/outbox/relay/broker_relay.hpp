#pragma once

/// \file
/// The handler of every relay to a message broker.
///
/// Events are published in waves. Of each key a wave has the first event that is not done, so that
/// an event is on its way only after the broker has confirmed the one before it. Events without a
/// key are all in the first wave. A broker that keeps the order of a key by itself
/// (message_format::pipelines_keys) gets whole keys in a wave.
///
/// | confirmation | outcome |
/// | --- | --- |
/// | confirmed | done |
/// | rejected | permanent |
/// | refused | retry |
/// | unavailable, unanswered | throttled: it is not the fault of the event |
/// | disconnected | throttled if the broker cannot be reached; otherwise ambiguous, so that an event
///   that ends every connection is parked in the end |

#include <holdfast/outbox/outcome.hpp>
#include <holdfast/outbox/relay/broker.hpp>
#include <holdfast/worker.hpp>

#include "outbox/relay/broker.hpp"
#include "outbox/relay/broker_sessions.hpp"
#include "outbox/relay/destination.hpp"

#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API broker_relay {
 public:
  /// Throws errc::invalid_argument if the template of the destination is invalid.
  broker_relay(std::unique_ptr<broker> target, std::string_view destination,
               const relay::broker_options& options);
  broker_relay(const broker_relay&) = delete;
  broker_relay& operator=(const broker_relay&) = delete;
  ~broker_relay();

  [[nodiscard]] outcome publish(const delivery& delivery);
  /// One outcome for each event.
  [[nodiscard]] std::vector<outcome> publish(std::span<const delivery* const> deliveries);

 private:
  /// One call of publish.
  struct publication {
    std::span<const delivery* const> deliveries;
    std::vector<outcome> outcomes{};
    /// Indices of events that are neither done nor failed, in order.
    std::vector<std::size_t> pending{};
    /// Keys with an event that failed.
    std::set<std::string_view> failed_keys{};
  };
  struct wave {
    std::vector<std::size_t> indices{};
    std::vector<broker_message> messages{};
  };

  [[nodiscard]] broker_message message_of(const delivery& delivery) const;
  /// Takes the events of the next wave from `pending`.
  [[nodiscard]] wave next_wave(publication& work) const;
  /// Returns true if the next wave can be published.
  [[nodiscard]] bool record(publication& work, const wave& sent,
                            std::span<const confirmation> confirmations, broker_session& session);
  [[nodiscard]] outcome outcome_of(const confirmation& answer, bool reachable) const;

  const std::unique_ptr<broker> broker_;
  const destination_template destination_;
  const relay::broker_options options_;
  broker_sessions sessions_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
