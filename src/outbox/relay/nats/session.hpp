#pragma once

/// \file
/// A connection to NATS. Messages are published with a reply subject each, to which the stream
/// sends its acknowledgement: a JSON object with the name of the stream, or with an error.

#include <holdfast/outbox/relay/broker.hpp>

#include "outbox/relay/broker.hpp"
#include "outbox/relay/broker_url.hpp"

#include <nats/nats.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::outbox::nats {

class nats_session final : public broker_session {
 public:
  using steady_time = std::chrono::steady_clock::time_point;

  /// Connects and logs in. Throws errc::unavailable.
  nats_session(const broker_endpoint& endpoint, const broker_url& url,
               const relay::broker_options& options, steady_time deadline);

  void publish(std::span<const broker_message> messages, std::span<confirmation> confirmations,
               steady_time deadline) override;
  [[nodiscard]] bool usable() override;

 private:
  template <class Handle, void (*destroy)(Handle*)>
  struct deleter {
    void operator()(Handle* handle) const { destroy(handle); }
  };
  template <class Handle, void (*destroy)(Handle*)>
  using handle = std::unique_ptr<Handle, deleter<Handle, destroy>>;
  using options_handle = handle<natsOptions, natsOptions_Destroy>;
  using message_handle = handle<natsMsg, natsMsg_Destroy>;

  [[nodiscard]] static options_handle make_options(const broker_endpoint& endpoint,
                                                   const broker_url& url,
                                                   const relay::broker_options& options,
                                                   steady_time deadline);
  /// Returns the status of libnats.
  [[nodiscard]] natsStatus send(const broker_message& message, std::uint64_t number);
  /// Waits for one answer. Returns false if there is none until the deadline, or the connection
  /// ended.
  [[nodiscard]] bool read_answer(std::span<const broker_message> messages,
                                 std::span<confirmation> confirmations, std::uint64_t first,
                                 steady_time deadline);
  [[nodiscard]] confirmation answer_of(natsMsg* answer, const broker_message& message);
  /// Nothing listens on the subject of a message. Tells a missing stream from a missing JetStream.
  [[nodiscard]] confirmation unheard(const std::string& subject);

  // Destroyed in reverse order: the subscription first.
  handle<natsConnection, natsConnection_Destroy> connection_{};
  handle<natsSubscription, natsSubscription_Destroy> subscription_{};
  std::string inbox_{};
  std::uint64_t next_number_ = 0;
  /// Asked at most once in a call, and only if a subject has no stream.
  std::optional<bool> jetstream_answers_{};
  bool ended_ = false;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox::nats
