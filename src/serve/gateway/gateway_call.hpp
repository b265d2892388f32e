#pragma once

/// \file
/// One request at the gateway. It lives on the loop of its client; only what may wait for the store
/// runs on a worker.
///
///   starting     the kept answer is looked for first: soft expiry, only-if-cached, or a leader
///   asking       an upstream has the request
///   holding      its response arrives, and is held until it is complete, up to `hold` bytes
///   streaming    it was larger: what arrives is passed on, and gathered for the store
///   recovering   the upstream failed; a worker asks the engine for the kept answer
///   ended        the client has its answer, or will not get one
///
/// A failure in `asking` or `holding` can be replaced: by another server, by the kept answer, or by
/// what the upstream said. In `streaming` it cannot: the connection of the client is cut.

#include <holdfast/version.hpp>

#include "serve/answer_stream.hpp"
#include "serve/gateway/answer_builder.hpp"
#include "serve/gateway/gateway_loop.hpp"
#include "serve/gateway/keep_rules.hpp"
#include "serve/gateway/request_conditions.hpp"
#include "serve/gateway/route_runtime.hpp"
#include "serve/http_server.hpp"
#include "serve/upstream.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// Thread-safety: used on the thread of its loop only.
class gateway_call final : public std::enable_shared_from_this<gateway_call>,
                           public response_receiver {
 public:
  gateway_call(gateway_loop& owner, route_runtime& target, const server_request& request,
               responder answer);
  ~gateway_call();

  void start();
  /// The loop ends: gives up everything that belongs to it.
  void abandon() noexcept;

  void on_head(const http::response_head& head) override;
  void on_content(std::string_view piece) override;
  void on_end(client_response end) override;

 private:
  enum class state : std::uint8_t { starting, asking, holding, streaming, recovering, ended };

  // starting
  void serve_kept_only();
  void serve_before_call();
  void answer_stored(const kept_response& kept, bool is_young);
  void begin();
  void join_or_ask();
  void follow(const shared_result& result);
  [[nodiscard]] std::string shared_id() const;
  // asking
  void ask();
  [[nodiscard]] bool may_ask_again(const upstream_failure& reason, bool sent) const;
  void ask_again(const upstream_failure& reason, bool sent);
  // a good response
  void commit();
  void stream_answer(server_response response, std::size_t held);
  void on_client_progress();
  [[nodiscard]] net::steady::time_point transfer_deadline() const;
  void give_up_client();
  void keep_streamed(point_value value);
  void report_failure();
  void write_piece(std::string_view piece);
  void finish_live();
  void keep_and_answer(point_value value, keep_decision decision);
  void answer_live(const http::cache_status& report);
  void finish_stream(bool complete);
  /// Notes the targets whose kept answers an unsafe request makes invalid.
  void note_invalidations();
  void invalidate_and_answer();
  // a failure
  void fail(const upstream_failure& reason);
  void recover(const upstream_failure& reason);
  void on_recovered(const upstream_failure& reason, recovery_result result);
  void pass_failure(const upstream_failure& reason, const std::string& refusal);
  void answer_unserved(const upstream_failure& reason, const std::string& refusal);
  // the end
  [[nodiscard]] pending_value take_pending();
  [[nodiscard]] responder take_responder();
  void answer(server_response response, outcome result);
  void log_answer(outcome result, int status, std::uint64_t bytes);
  void end(outcome result, int status, std::uint64_t bytes);
  void finish_shared(const shared_result& result);

  [[nodiscard]] answer_request asked() const {
    return {.method = method_, .conditions = conditions_, .address = address_};
  }
  [[nodiscard]] point_value value_of(const keep_decision& decision) const;
  [[nodiscard]] bool is_event_stream() const;
  /// Runs `work` on a worker, and `done` with its result on the loop. Returns false if there is no
  /// place for it; then neither is called.
  template <class Work, class Done>
  [[nodiscard]] bool run_on_worker(Work work, Done done);

  std::shared_ptr<gateway_runtime> runtime_;
  gateway_loop* loop_;
  route_runtime& target_;
  const route& rules_;
  upstream_group& servers_;
  state state_ = state::starting;
  // The request.
  std::string method_;
  std::string target_text_;
  std::string host_;
  std::string address_;
  std::string body_;
  bool is_read_;    // GET or HEAD
  bool protected_;  // kept answers stand in for failures
  http::field_block forwarded_;
  request_conditions conditions_;
  request_facts facts_;
  std::string key_text_;
  std::string invalidation_key_;  // empty if the route has no `vary`
  std::string request_host_{};    // of an unsafe request
  std::string request_target_{};  // the same, normalised
  std::vector<invalidation> stale_targets_{};
  std::optional<responder> answer_;
  net::steady::time_point started_;
  net::steady::time_point deadline_;
  // Asking.
  std::optional<pending_value> pending_{};
  timestamp as_of_{};
  bool leads_ = false;
  std::uint64_t tried_ = 0;
  std::size_t server_ = 0;
  unsigned attempts_ = 0;
  upstream_call call_{};
  net::timer timer_;
  // The response.
  int status_ = 0;
  response_fields fields_{};
  std::string content_{};
  std::uint64_t content_bytes_ = 0;
  std::optional<std::uint64_t> announced_{};
  bool is_failing_ = false;
  bool is_paused_ = false;
  bool is_writing_ = false;  // a call of the stream is on the stack
  bool is_response_over_ = false;
  bool is_response_whole_ = false;
  bool is_gathering_ = true;
  bool is_logged_ = false;
  std::optional<answer_stream> stream_{};
  std::size_t unsent_ = 0;  // bytes that the client's connection has not taken
  std::chrono::nanoseconds paused_time_{};
  net::steady::time_point paused_since_{};
  net::steady::time_point streaming_since_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
