#include "serve/gateway/gateway_call.hpp"

#include <holdfast/error.hpp>

#include "failover/insight/drill_probe.hpp"
#include "serve/gateway/invalidated_targets.hpp"
#include "serve/gateway/revalidation.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

using net::steady;
using forward_reason = http::cache_status::forward_reason;

gateway_call::gateway_call(gateway_loop& owner, route_runtime& target,
                           const server_request& request, responder answer)
    : routes_(owner.routes()),
      runtime_(routes_->runtime()),
      loop_(&owner),
      target_(target),
      rules_(target.rules),
      request_(target, *runtime_, request),
      answer_(std::move(answer)),
      started_(owner.loop().now()),
      deadline_(started_ + request_.time_limit(target)),
      attempts_(routes_->servers(target), target.retry.get(), request_.is_idempotent()),
      timer_(owner.loop()),
      transfer_(owner.loop(), call_) {}

gateway_call::~gateway_call() = default;

template <class Work, class Done>
bool gateway_call::run_on_worker(Work work, Done done) {
  return runtime_->post([self = shared_from_this(), loop = loop_->shared_loop(),
                         work = std::move(work), done = std::move(done)]() mutable {
    std::optional<decltype(work())> result;
    try {
      result.emplace(work());
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // Reported below.
    }
    // The call belongs to the loop: it must not be destroyed here while that runs.
    (void)loop->post([self = std::move(self), done = std::move(done),
                      result = std::make_shared<decltype(result)>(std::move(result))]() mutable {
      if (self->state_ == state::ended) return;
      if (*result) done(*self, *std::move(*result));
      else self->answer(problem_response(500, "the gateway failed"), outcome::unserved);
    });
  });
}

template <class Done>
bool gateway_call::read_kept(Done done) {
  if (auto result = runtime_->read_from_memory(target_, request_, cause_code::fresh)) {
    done(*this, *std::move(result));
    return true;
  }
  return run_on_worker([this] { return runtime_->read(target_, request_, cause_code::fresh); },
                       std::move(done));
}

// Starting.

void gateway_call::start() {
  loop_->add(shared_from_this());
  if (request_.is_protected && request_.facts.directives.only_if_cached) {
    if (!read_kept([](gateway_call& self, const recovery_result& result) {
          self.answer_kept_only(result);
        }))
      answer(problem_response(503, "the gateway is busy"), outcome::unserved);
    return;
  }
  if (!request_.is_protected || !target_.options.soft_expiry) return begin();
  if (!read_kept([](gateway_call& self, recovery_result result) {
        self.answer_before_call(std::move(result));
      }))
    begin();
}

void gateway_call::answer_kept_only(const recovery_result& result) {
  if (result.kept)
    return answer(kept_answer(rules_, request_.as_answered(), result.kept->response,
                              result.kept->facts, {.hit = true}, runtime_->now()),
                  outcome::fresh);
  auto response = problem_response(504, "nothing is kept for this only-if-cached request");
  add_cache_status(rules_, request_.address,
                   {.forwarded = forward_reason::miss, .detail = result.refusal}, {}, response);
  answer(std::move(response), outcome::unserved);
}

/// Soft expiry: a young answer is given without asking; an older one, too, while it is refreshed.
void gateway_call::answer_before_call(recovery_result result) {
  if (!result.kept) return begin();
  auto& facts = result.kept->facts;
  const auto soft = target_.options.soft_expiry.value_or(std::chrono::seconds(0));
  const auto decision = decide_reuse(request_.facts, result.kept->response.fields, facts.as_of,
                                     runtime_->now(), soft);
  if (decision == reuse::none) return begin();
  if (decision == reuse::refresh) facts.cause = cause_code::refreshing;
  answer_stored(*result.kept, decision == reuse::young);
}

void gateway_call::answer_stored(const kept_response& kept, bool is_young) {
  auto response =
      kept_answer(rules_, request_.as_answered(), kept.response, kept.facts,
                  {.hit = true, .detail = is_young ? "" : "refreshing"}, runtime_->now());
  if (is_young) return answer(std::move(response), outcome::fresh);
  log_answer(outcome::fresh, response.status, response.body.size());
  take_responder().answer(std::move(response));
  // The same request goes on without a client, unless another one does already.
  begin();
}

void gateway_call::begin() {
  if (!request_.is_protected) return ask();
  bool is_allowed = true;
  try {
    auto call = target_.point.begin(arguments_of(request_.key_text));
    as_of_ = call.as_of();
    is_allowed = call.allowed();
    pending_.emplace(std::move(call));
  } catch (const error&) {
    return answer(problem_response(503, "the gateway is stopping"), outcome::unserved);
  }
  if (!is_allowed)
    return recover({.cause = cause_code::refused,
                    .status = 503,
                    .detail = target_.refusal_detail(*runtime_->options().engine),
                    .asked = false});
  failover::drill_probe probe;
  (void)pending_->rehearse();
  // A refresh has no client that could rehearse an outage.
  if (probe.is_active() && answer_) rehearse();
  else join_or_ask();
}

/// A drill runs. If it selects this request, and an answer is kept, the client gets that.
void gateway_call::rehearse() {
  auto call = std::make_shared<pending_value>(take_pending());
  const auto go_on = [call, since = loop_->loop().now()](gateway_call& self) {
    self.as_of_ = call->as_of();
    self.pending_.emplace(std::move(*call));
    self.deadline_ += self.loop_->loop().now() - since;
    self.join_or_ask();
  };
  const bool posted = run_on_worker(
      [this, call] { return runtime_->rehearse(target_, *call, request_); },
      [go_on](gateway_call& self, recovery_result result) {
        if (!result.kept) return go_on(self);
        self.answer(
            kept_answer(self.rules_, self.request_.as_answered(), result.kept->response,
                        result.kept->facts, {.hit = true, .detail = "drill"}, self.runtime_->now()),
            outcome::stale);
      });
  if (!posted) go_on(*this);
}

void gateway_call::join_or_ask() {
  // A client that wants nothing stored gets no answer that was made for another one either.
  const bool shares =
      (target_.options.single_flight || !answer_) && !request_.facts.directives.no_store;
  if (!shares || request_.method != "GET" || !request_.conditions.fields().empty())
    return confirm_or_ask();
  leads_ = runtime_->shared().lead_or_follow(
      shared_id(),
      [weak = weak_from_this(), loop = loop_->shared_loop()](const shared_result& result) {
        (void)loop->post([weak, result] {
          const auto self = weak.lock();
          if (self && self->state_ == state::starting) self->follow(result);
        });
      });
  if (leads_) return confirm_or_ask();
  if (!answer_) return end(outcome::fresh, 0, 0);  // another request refreshes it
  timer_.set_callback(
      [this] { fail({.cause = cause_code::late, .status = 504, .detail = "late"}); });
  timer_.set(deadline_);
}

void gateway_call::follow(const shared_result& result) {
  timer_.cancel();
  if (!result) return confirm_or_ask();
  const auto& shared = *result;
  if (shared.failure) return fail(*shared.failure);
  if (!shared.response) return confirm_or_ask();
  // The first client may have had no credential, or another one.
  const auto directives = shared.response->fields.cache_control();
  if (!unkeyed_credential(rules_, request_.facts, directives).empty()) return confirm_or_ask();
  received_.status = shared.response->status;
  received_.fields = shared.response->fields;
  received_.content = shared.response->content;
  (void)take_pending().succeed(point_value{.keep = false});
  answer_live({.forwarded = forward_reason::miss, .collapsed = true});
}

std::string gateway_call::shared_id() const { return rules_.name + '\n' + request_.key_text; }

// Asking.

/// Asks whether the kept answer is still valid, if memory has it and it can be confirmed.
void gateway_call::confirm_or_ask() {
  confirmable_ = runtime_->confirmable(target_, request_);
  ask();
}

void gateway_call::ask() {
  auto& server = attempts_.begin();
  state_ = state::asking;
  auto fields = request_.forwarded;
  if (confirmable_) add_validators(confirmable_->fields, fields);
  try {
    call_ = server.stream({.method = request_.method,
                           .target = request_.target_text,
                           .fields = std::move(fields),
                           .body = request_.body,
                           .host = request_.host},
                          deadline_, *this);
  } catch (const error& problem) {
    pending_.reset();
    answer(problem_response(400, "the request cannot be forwarded: " + problem.message()),
           outcome::refused);
  }
}

void gateway_call::ask_again(const upstream_failure& reason, bool sent) {
  const auto now = loop_->loop().now();
  if (now >= deadline_ || reason.cause == cause_code::late) return fail(reason);
  const auto pause = attempts_.pause_after(reason, sent);
  if (!pause) return fail(reason);
  received_ = {};
  is_failing_ = false;
  if (pause->count() == 0) return ask();
  timer_.set_callback([this] { ask(); });
  timer_.set(std::min(deadline_, now + *pause));
}

void gateway_call::on_head(const http::response_head& head) {
  state_ = state::holding;
  received_.read_head(head, runtime_->now());
  is_failing_ = request_.is_protected && is_failure(rules_, received_.status);
  // What comes now and then would be held until the deadline.
  const bool has_content = head.content != http::framing::none && request_.method != "HEAD";
  const bool is_large = received_.length.value_or(0) > rules_.hold;
  if (!is_failing_ && has_content && (is_large || rules_.hold == 0 || received_.is_event_stream()))
    commit();
}

void gateway_call::on_content(std::string_view piece) {
  if (state_ == state::ended) return;
  received_.bytes += piece.size();
  if (state_ == state::streaming) return write_piece(piece);
  received_.content.append(piece);
  if (state_ != state::holding || received_.content.size() <= rules_.hold) return;
  if (!is_failing_) return commit();
  if (std::exchange(is_held_back_, true)) return;
  // A large response that is a failure: it is only needed if nothing else can be given.
  call_.pause();
  recover({.status = received_.status});
}

void gateway_call::on_end(client_response end_of_response) {
  if (state_ == state::ended) return;
  const bool complete = end_of_response.result == exchange_status::complete;
  attempts_.report(complete && !is_failing_);
  if (state_ == state::streaming) return finish_stream(complete);
  if (state_ == state::recovering) {
    is_response_over_ = true;  // a large failure
    is_response_whole_ = complete;
    return;
  }
  const bool is_confirmed = complete && received_.status == 304 && confirmable_;
  if (is_confirmed) return finish_confirmed();
  // The conditions of clients are not forwarded, so no client has asked for 304.
  const bool is_usable = received_.status != 101 && !(request_.is_read && received_.status == 304);
  if (complete && is_usable) {
    if (!is_failing_) return finish_live();
    return ask_again({.status = received_.status}, true);
  }
  upstream_failure reason{.detail = "malformed"};
  switch (end_of_response.result) {
    case exchange_status::unreachable:
      reason.detail = "unreachable";
      reason.unreachable = true;
      break;
    case exchange_status::late:
      reason = {.cause = cause_code::late, .status = 504, .detail = "late"};
      break;
    case exchange_status::cut:
      reason.detail = "cut";
      break;
    default:
      break;
  }
  is_failing_ = false;
  ask_again(reason, end_of_response.sent);
}

/// The kept response is valid; its fields are newer now.
void gateway_call::finish_confirmed() {
  if (!confirmable_) return ask();
  auto kept = std::move(*confirmable_);
  confirmable_.reset();
  if (!is_about(received_.fields, kept.fields)) {
    // It is about something that is not kept.
    received_ = {};
    return ask();
  }
  received_.status = kept.status;
  received_.fields = merge_fields(kept.fields, received_.fields);
  received_.content = std::move(kept.content);
  is_confirmed_ = true;
  const auto decision = decide_keep(rules_, request_.facts, received_.status, received_.fields,
                                    received_.content.size());
  keep_and_answer(value_of(decision), decision);
}

// A good response.

/// The response is larger than what is held: from now on a failure cannot be replaced.
void gateway_call::commit() {
  state_ = state::streaming;
  finish_shared(nullptr);
  transfer_.start(received_.bytes, received_.is_event_stream());
  const auto decision =
      request_.is_protected
          ? decide_keep(rules_, request_.facts, received_.status, received_.fields,
                        static_cast<std::size_t>(received_.length.value_or(0)))
          : keep_decision{.reason = "method"};
  is_gathering_ = decision.action == keep_action::keep && !received_.is_event_stream();
  auto held = is_gathering_ ? received_.content : std::exchange(received_.content, {});
  if (!answer_) return;  // a refresh
  const auto asked = request_.as_answered();
  const auto now = runtime_->now();
  if (is_not_modified(asked, received_.status, received_.fields, now)) {
    auto response = live_answer(rules_, asked, received_.status, received_.fields, {},
                                {.forwarded = forward_reason::bypass, .detail = "streamed"}, now);
    log_answer(outcome::live, 304, 0);
    take_responder().answer(std::move(response));
    return;
  }
  http::cache_status report{.forwarded = forward_reason::method};
  if (request_.is_read)
    report = {.forwarded = forward_reason::bypass,
              .detail = std::string(decision.reason.empty() ? std::string_view("streamed")
                                                            : decision.reason)};
  auto response =
      live_answer(rules_, asked, received_.status, received_.fields, std::move(held), report, now);
  if (!transfer_.open(take_responder(), std::move(response), received_.length,
                      [weak = weak_from_this()] {
                        if (const auto self = weak.lock()) self->on_client_progress();
                      }))
    give_up_client();
}

void gateway_call::on_client_progress() {
  if (state_ == state::streaming && !transfer_.resume()) give_up_client();
}

void gateway_call::write_piece(std::string_view piece) {
  if (is_gathering_) {
    if (received_.content.size() + piece.size() > rules_.max_payload) {
      is_gathering_ = false;
      std::string().swap(received_.content);
    } else {
      received_.content.append(piece);
    }
  }
  if (!transfer_.write(piece)) give_up_client();
}

/// The client is gone, so the rest of the response is not needed.
void gateway_call::give_up_client() {
  call_.cancel();
  pending_.reset();
  end(outcome::cut, received_.status, received_.bytes);
}

/// What the engine gets for a response that was received completely.
point_value gateway_call::value_of(const keep_decision& decision) const {
  point_value value{.response = {.target = masked_target(request_.target_text)},
                    .form = runtime_->options().form,
                    .keep = decision.action != keep_action::pass};
  if (decision.action == keep_action::keep) {
    value.expires = keep_until(rules_, received_.fields, target_.options.expiry, as_of_);
    if (value.expires > as_of_) {
      value.response.status = received_.status;
      value.response.fields = received_.fields;
      value.response.content = received_.content;
      return value;
    }
  }
  value.response.invalid =
      std::string(decision.reason.empty() ? std::string_view("expired") : decision.reason);
  value.expires = longest_expiry(rules_, target_.options.expiry, as_of_);
  return value;
}

void gateway_call::finish_live() {
  confirmable_.reset();
  if (!request_.is_protected) {
    return invalidate(invalidated_targets(*runtime_, request_, received_), [](gateway_call& self,
                                                                              bool is_invalidated) {
      self.answer_live(
          {.forwarded = self.request_.is_read ? forward_reason::bypass : forward_reason::method,
           .detail = is_invalidated ? "" : "not-invalidated"});
    });
  }
  const auto decision = decide_keep(rules_, request_.facts, received_.status, received_.fields,
                                    received_.content.size());
  keep_and_answer(value_of(decision), decision);
}

void gateway_call::keep_and_answer(point_value value, keep_decision decision) {
  const bool is_kept = decision.action == keep_action::keep && value.response.invalid.empty();
  const bool is_expired = decision.action == keep_action::keep && !is_kept;
  http::cache_status report{.forwarded = is_kept ? forward_reason::miss : forward_reason::bypass,
                            .stored = is_kept,
                            .detail = is_expired ? "expired" : std::string(decision.reason)};
  if (is_kept) target_.note_validators(received_.fields);
  if (leads_)
    finish_shared(
        is_kept ? std::make_shared<const shared_outcome>(shared_outcome{.response = value.response})
                : nullptr);
  if (!value.keep || !runtime_->keeping_waits(target_)) {
    (void)take_pending().succeed(std::move(value));
    return answer_live(report);
  }
  auto call = std::make_shared<pending_value>(take_pending());
  const bool posted = run_on_worker(
      [this, call, value = std::make_shared<point_value>(std::move(value)), is_kept] {
        (void)call->succeed(std::move(*value));
        return !is_kept || runtime_->is_stored(target_, request_.key_text, as_of_);
      },
      [report](gateway_call& self, bool is_stored) {
        if (is_stored) self.answer_live(report);
        else self.answer_live({.forwarded = forward_reason::bypass, .detail = "store-failed"});
      });
  if (!posted) answer_live({.forwarded = forward_reason::bypass, .detail = "busy"});
}

/// Stores that older answers of the targets are not valid, and calls `done` with whether it did.
/// The client gets the end of its answer after that: its next request must not see them.
template <class Done>
void gateway_call::invalidate(std::vector<invalidation> targets, Done done) {
  if (targets.empty()) return done(*this, true);
  const auto store = [runtime = runtime_, targets = std::move(targets)] {
    try {
      runtime->invalidate(targets);
    } catch (const error&) {
      return false;
    }
    return true;
  };
  if (!runtime_->keeping_waits(target_)) return done(*this, store());
  if (!run_on_worker(store, done)) done(*this, false);
}

void gateway_call::answer_live(http::cache_status report) {
  if (!answer_) return end(outcome::live, received_.status, received_.content.size());
  if (is_confirmed_) report.forwarded_status = 304;
  auto response = live_answer(rules_, request_.as_answered(), received_.status, received_.fields,
                              std::move(received_.content), report, runtime_->now());
  if (request_.method == "HEAD") {
    response.head_length = received_.length;
    response.unknown_length = !received_.length;
  }
  answer(std::move(response), outcome::live);
}

void gateway_call::finish_stream(bool complete) {
  if (!complete) {
    transfer_.cut();
    if (pending_) report_failure();
    return end(outcome::cut, received_.status, received_.bytes);
  }
  const auto finish = [](gateway_call& self, bool /*is_invalidated*/) {
    self.transfer_.complete();
    self.end(outcome::live, self.received_.status, self.received_.bytes);
  };
  if (!pending_) return invalidate(invalidated_targets(*runtime_, request_, received_), finish);
  std::size_t size = 0;
  if (is_gathering_) size = received_.content.size();
  else if (!received_.is_event_stream()) size = static_cast<std::size_t>(received_.bytes);
  keep_streamed(
      value_of(decide_keep(rules_, request_.facts, received_.status, received_.fields, size)));
  finish(*this, true);
}

/// The client does not wait for the store.
void gateway_call::keep_streamed(point_value value) {
  if (received_.is_event_stream()) value.keep = false;
  if (!value.keep || !runtime_->keeping_waits(target_)) {
    (void)take_pending().succeed(std::move(value));
    return;
  }
  (void)runtime_->post([call = std::make_shared<pending_value>(take_pending()),
                        kept = std::make_shared<point_value>(std::move(value))] {
    (void)call->succeed(std::move(*kept));
  });
}

/// Nothing can be given to the client, but breaker and counters must know.
void gateway_call::report_failure() {
  (void)runtime_->post([runtime = runtime_, &target = target_, facts = request_.facts,
                        call = std::make_shared<pending_value>(take_pending())] {
    (void)runtime->recover(target, std::move(*call), facts, {}, cause_code::failed);
  });
}

// A failure.

void gateway_call::fail(const upstream_failure& reason) {
  if (pending_) return recover(reason);
  if (received_.status != 0 && reason.detail.empty()) return pass_failure(reason, {});
  answer_unserved(reason, {});
}

void gateway_call::recover(const upstream_failure& reason) {
  state_ = state::recovering;
  timer_.cancel();
  if (leads_)
    finish_shared(std::make_shared<const shared_outcome>(shared_outcome{.failure = reason}));
  auto call = std::make_shared<pending_value>(take_pending());
  if (auto result = runtime_->recover_from_memory(target_, *call, request_, reason.cause))
    return on_recovered(reason, *std::move(result));
  const bool posted = run_on_worker(
      [this, call, cause = reason.cause] {
        return runtime_->recover(target_, std::move(*call), request_.facts,
                                 request_.invalidation_key, cause);
      },
      [reason](gateway_call& self, recovery_result result) {
        self.on_recovered(reason, std::move(result));
      });
  if (!posted) on_recovered(reason, {.refusal = "busy"});
}

void gateway_call::on_recovered(const upstream_failure& reason, recovery_result result) {
  if (!answer_) {
    call_.cancel();
    return end(outcome::unserved, reason.status, 0);
  }
  if (!result.kept) return pass_failure(reason, result.refusal);
  call_.cancel();
  http::cache_status report;
  if (reason.asked) {
    report.forwarded = forward_reason::stale;
    report.forwarded_status = reason.status;
  } else {
    report.hit = true;
  }
  report.detail = std::string(reason.detail);
  answer(kept_answer(rules_, request_.as_answered(), result.kept->response, result.kept->facts,
                     std::move(report), runtime_->now()),
         outcome::stale);
}

/// Passes on what the upstream said, if it said anything.
void gateway_call::pass_failure(const upstream_failure& reason, const std::string& refusal) {
  if (received_.status == 0 || !reason.detail.empty()) return answer_unserved(reason, refusal);
  if (is_response_over_ && !is_response_whole_) return answer_unserved(reason, refusal);
  const http::cache_status report{
      .forwarded = request_.is_read ? forward_reason::miss : forward_reason::method,
      .forwarded_status = reason.status,
      .detail = refusal};
  auto response = live_answer(rules_, request_.as_answered(), received_.status, received_.fields,
                              std::move(received_.content), report, runtime_->now());
  if (!is_held_back_ || is_response_over_) {
    if (request_.method == "HEAD") {
      response.head_length = received_.length;
      response.unknown_length = !received_.length;
    }
    return answer(std::move(response), outcome::unserved);
  }
  // It is larger than what is held.
  state_ = state::streaming;
  is_gathering_ = false;
  transfer_.start(received_.bytes, false);
  if (!transfer_.open(take_responder(), std::move(response), received_.length,
                      [weak = weak_from_this()] {
                        if (const auto self = weak.lock()) self->on_client_progress();
                      }))
    return give_up_client();
  call_.resume();
}

void gateway_call::answer_unserved(const upstream_failure& reason, const std::string& refusal) {
  std::string text = "the upstream failed";
  if (!reason.detail.empty()) text += ": " + std::string(reason.detail);
  if (!refusal.empty()) text += "; nothing else can be given: " + refusal;
  auto response = problem_response(reason.status, text);
  if (reason.status == 503) response.fields.add("Retry-After", "1");
  add_cache_status(rules_, request_.address,
                   {.forwarded = request_.is_read ? forward_reason::miss : forward_reason::method,
                    .detail = refusal.empty() ? std::string(reason.detail) : refusal},
                   {}, response);
  answer(std::move(response), outcome::unserved);
}

// The end.

pending_value gateway_call::take_pending() {
  auto taken = std::move(*pending_);  // NOLINT(bugprone-unchecked-optional-access)
  pending_.reset();
  return taken;
}

responder gateway_call::take_responder() {
  auto taken = std::move(*answer_);  // NOLINT(bugprone-unchecked-optional-access)
  answer_.reset();
  return taken;
}

void gateway_call::finish_shared(const shared_result& result) {
  if (std::exchange(leads_, false)) runtime_->shared().finish(shared_id(), result);
}

void gateway_call::answer(server_response response, outcome result) {
  const auto status = response.status;
  const auto bytes = response.body.size();
  if (answer_) take_responder().answer(std::move(response));
  end(result, status, bytes);
}

void gateway_call::log_answer(outcome result, int status, std::uint64_t bytes) {
  runtime_->record(
      {.target = target_,
       .method = request_.method,
       .path = request_.target_text,
       .address = request_.address,
       .status = status,
       .received = request_.body.size(),
       .sent = bytes,
       .duration = std::chrono::duration_cast<std::chrono::microseconds>(steady::now() - started_),
       .result = result});
  is_logged_ = true;
}

void gateway_call::end(outcome result, int status, std::uint64_t bytes) {
  if (state_ == state::ended) return;
  if (!is_logged_) log_answer(result, status, bytes);
  abandon();
  loop_->remove(shared_from_this());
}

void gateway_call::abandon() noexcept {
  if (state_ == state::ended) return;
  state_ = state::ended;
  finish_shared(nullptr);
  timer_.cancel();
  call_.cancel();
  transfer_.cut();
  pending_.reset();
  answer_.reset();
  // Here, because this object may be destroyed on a worker. The last request of replaced routes may
  // be called by one of their connections now.
  if (routes_ != loop_->routes()) loop_->loop().retire(std::move(routes_));
  else routes_.reset();
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
