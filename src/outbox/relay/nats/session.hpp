#pragma once

/// \file
/// A connection to NATS. Messages are published with a reply subject each, to which the stream
/// sends its acknowledgement: a JSON object with the name of the stream, or with an error.

#include <holdfast/outbox/relay/broker.hpp>

#include "outbox/relay/broker.hpp"
#include "outbox/relay/broker_url.hpp"

#include <nats/nats.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
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

  /// Answers that were not read yet. libnats calls back on a thread of its own, possibly after the
  /// session has ended. (Its synchronous subscriptions do not report a subject without
  /// subscribers.)
  struct answer_queue {
    std::mutex mutex{};
    std::condition_variable changed{};
    std::deque<message_handle> answers{};
  };
  static void on_answer(natsConnection* connection, natsSubscription* subscription, natsMsg* answer,
                        void* queue);
  static void on_unsubscribed(void* queue);
  void subscribe();
  /// Returns null if there is no answer until the deadline, or the connection ended.
  [[nodiscard]] message_handle next_answer(steady_time deadline);

  [[nodiscard]] static options_handle make_options(const broker_endpoint& endpoint,
                                                   const broker_url& url,
                                                   const relay::broker_options& options,
                                                   steady_time deadline);
  /// Returns the status of libnats.
  [[nodiscard]] natsStatus send(const broker_message& message, std::uint64_t number);
  /// Records one answer. Returns false if it is not the first answer to a message of this call.
  [[nodiscard]] bool record(natsMsg* answer, std::span<const broker_message> messages,
                            std::span<confirmation> confirmations, std::uint64_t first);
  [[nodiscard]] confirmation answer_of(natsMsg* answer, const broker_message& message);
  /// Nothing listens on the subject of a message. Tells a missing stream from a missing JetStream.
  [[nodiscard]] confirmation unheard(const std::string& subject);

  // Destroyed in reverse order: the subscription first.
  handle<natsConnection, natsConnection_Destroy> connection_{};
  handle<natsSubscription, natsSubscription_Destroy> subscription_{};
  std::shared_ptr<answer_queue> queue_ = std::make_shared<answer_queue>();
  std::string inbox_{};
  std::uint64_t next_number_ = 0;
  /// Asked at most once in a call, and only if a subject has no stream.
  std::optional<bool> jetstream_answers_{};
  bool ended_ = false;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox::nats
