#pragma once

/// \file
/// One request at the gateway. It lives on the loop of its client; only what may wait for the store
/// runs on a worker.
///
///   starting     the kept answer is looked for first: soft expiry, only-if-cached, a drill, or a
///                leader
///   asking       an upstream has the request
///   holding      its response arrives, and is held until it is complete, up to `hold` bytes
///   streaming    it was larger: what arrives is passed on, and gathered for the store
///   recovering   the upstream failed; the engine is asked for the kept answer: on the loop if it
///                is in memory, else on a worker
///   ended        the client has its answer, or will not get one
///
/// A failure in `asking` or `holding` can be replaced: by another server, by the kept answer, or by
/// what the upstream said. In `streaming` it cannot: the connection of the client is cut.

#include <holdfast/version.hpp>

#include "serve/gateway/answer_builder.hpp"
#include "serve/gateway/client_transfer.hpp"
#include "serve/gateway/gateway_loop.hpp"
#include "serve/gateway/gateway_request.hpp"
#include "serve/gateway/keep_rules.hpp"
#include "serve/gateway/received_response.hpp"
#include "serve/gateway/route_runtime.hpp"
#include "serve/gateway/upstream_attempts.hpp"
#include "serve/http_server.hpp"
#include "serve/upstream.hpp"

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
  void answer_kept_only(const recovery_result& result);
  void answer_before_call(recovery_result result);
  void answer_stored(const kept_response& kept, bool is_young);
  void begin();
  void rehearse();
  void join_or_ask();
  void follow(const shared_result& result);
  [[nodiscard]] std::string shared_id() const;
  // asking
  void confirm_or_ask();
  void ask();
  void ask_again(const upstream_failure& reason, bool sent);
  void finish_confirmed();
  // a good response
  void commit();
  void on_client_progress();
  void give_up_client();
  void keep_streamed(point_value value);
  void report_failure();
  void write_piece(std::string_view piece);
  void finish_live();
  void keep_and_answer(point_value value, keep_decision decision);
  void answer_live(http::cache_status report);
  void finish_stream(bool complete);
  template <class Done>
  void invalidate(std::vector<invalidation> targets, Done done);
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

  [[nodiscard]] point_value value_of(const keep_decision& decision) const;
  /// Reads the kept answer: at once if it is in memory, else on a worker. Calls `done` with it on
  /// the loop. Returns false if there is no place on the workers.
  template <class Done>
  [[nodiscard]] bool read_kept(Done done);
  /// Runs `work` on a worker, and `done` with its result on the loop. Returns false if there is no
  /// place for it; then neither is called.
  template <class Work, class Done>
  [[nodiscard]] bool run_on_worker(Work work, Done done);

  std::shared_ptr<loop_routes> routes_;
  std::shared_ptr<gateway_runtime> runtime_;
  gateway_loop* loop_;
  route_runtime& target_;
  const route& rules_;
  state state_ = state::starting;
  const gateway_request request_;
  std::optional<responder> answer_;
  net::steady::time_point started_;
  net::steady::time_point deadline_;
  // Asking.
  std::optional<pending_value> pending_{};
  timestamp as_of_{};
  bool leads_ = false;
  upstream_attempts attempts_;
  upstream_call call_{};
  net::timer timer_;
  /// The upstream is asked whether this is still valid.
  std::optional<stored_response> confirmable_{};
  // The response.
  received_response received_{};
  bool is_confirmed_ = false;  // it is the kept one, which the upstream has confirmed
  bool is_failing_ = false;
  bool is_held_back_ = false;  // a large failure, of which no more is read
  bool is_response_over_ = false;
  bool is_response_whole_ = false;
  bool is_gathering_ = true;
  bool is_logged_ = false;
  client_transfer transfer_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
