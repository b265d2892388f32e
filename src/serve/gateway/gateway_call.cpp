#include "serve/gateway/gateway_call.hpp"

#include <holdfast/error.hpp>

#include "http/date.hpp"
#include "serve/gateway/forwarding.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

using net::steady;
using forward_reason = http::cache_status::forward_reason;

namespace {

/// The slowest transfer is 1 KiB a second, after the first ten seconds.
constexpr std::chrono::seconds transfer_reserve{10};
/// The client's connection has at most so much of an answer before the upstream has to wait.
constexpr std::size_t most_unsent = std::size_t{256} << 10U;

bool is_safe(std::string_view method) noexcept {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

/// Repeating it changes nothing.
bool is_idempotent(std::string_view method) noexcept {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE";
}

/// The path and query that a reference names, if it is of the origin `host`; else empty text.
std::string target_in_origin(std::string_view reference, std::string_view host,
                             std::string_view base) {
  if (reference.starts_with('/') && !reference.starts_with("//")) return std::string(reference);
  const auto colon = reference.find("://");
  if (colon != std::string_view::npos || reference.starts_with("//")) {
    const auto authority =
        reference.substr(colon != std::string_view::npos ? colon + 3 : std::size_t{2});
    const auto slash = authority.find('/');
    if (slash == std::string_view::npos ||
        !http::equals_ignoring_case(authority.substr(0, slash), host))
      return {};
    return std::string(authority.substr(slash));
  }
  // Relative to the folder of the request.
  const auto path = base.substr(0, base.find('?'));
  return std::string(path.substr(0, path.rfind('/') + 1)).append(reference);
}

/// A part of the deadline is for the recovery.
std::chrono::microseconds upstream_time(std::chrono::microseconds deadline) {
  constexpr std::chrono::microseconds longest_reserve = std::chrono::milliseconds(50);
  return deadline - std::min(longest_reserve, deadline / 4);
}

}  // namespace

gateway_call::gateway_call(gateway_loop& owner, route_runtime& target,
                           const server_request& request, responder answer)
    : runtime_(owner.runtime()),
      loop_(&owner),
      target_(target),
      rules_(target.rules),
      servers_(owner.servers(target)),
      method_(request.method),
      target_text_(target_text(target.rules, source_of(request.target, request.host))),
      host_(target.rules.forward_host ? request.host : std::string_view{}),
      address_(request.peer),
      body_(std::move(request.body)),
      is_read_(method_ == "GET" || method_ == "HEAD"),
      // The content of a request is not part of the key.
      protected_(is_read_ && target.options.enabled && body_.empty()),
      forwarded_(forwarded_request(target.rules, request.method, request.fields,
                                   {.address = request.peer,
                                    .host = request.host,
                                    .secure = request.secure,
                                    .trusted = owner.runtime()->is_trusted(request.peer)})),
      conditions_(request.fields),
      facts_(request_facts::of(request.method, request.fields)),
      answer_(std::move(answer)),
      started_(owner.loop().now()),
      timer_(owner.loop()) {
  const auto source = source_of(request.target, request.host);
  if (protected_) {
    key_text_ = runtime_->keys().of_request(rules_, source, request.fields);
    if (!rules_.vary.empty()) invalidation_key_ = route_keys::invalidation_key(rules_, source);
  } else if (!is_safe(method_)) {
    request_host_ = request.host;
    request_target_ = request.target.text();
  }
  const auto limit =
      is_read_ ? upstream_time(target.deadline) : std::chrono::microseconds(rules_.other_deadline);
  deadline_ = started_ + limit;
}

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

// Starting.

void gateway_call::start() {
  loop_->add(shared_from_this());
  if (protected_ && facts_.directives.only_if_cached) return serve_kept_only();
  if (protected_ && target_.options.soft_expiry) return serve_before_call();
  begin();
}

void gateway_call::serve_kept_only() {
  const bool posted = run_on_worker(
      [this] {
        return runtime_->read(target_, facts_, key_text_, invalidation_key_, cause_code::fresh);
      },
      [](gateway_call& self, recovery_result result) {
        if (result.kept)
          return self.answer(kept_answer(self.rules_, self.asked(), result.kept->response,
                                         result.kept->facts, {.hit = true}, self.runtime_->now()),
                             outcome::fresh);
        auto response = problem_response(504, "nothing is kept for this only-if-cached request");
        add_cache_status(self.rules_, self.address_,
                         {.forwarded = forward_reason::miss, .detail = result.refusal}, {},
                         response);
        self.answer(std::move(response), outcome::unserved);
      });
  if (!posted) answer(problem_response(503, "the gateway is busy"), outcome::unserved);
}

/// Soft expiry: a young answer is given without asking; an older one, too, while it is refreshed.
void gateway_call::serve_before_call() {
  const bool posted = run_on_worker(
      [this] {
        return runtime_->read(target_, facts_, key_text_, invalidation_key_, cause_code::fresh);
      },
      [](gateway_call& self, recovery_result result) {
        const auto now = self.runtime_->now();
        if (!result.kept) return self.begin();
        auto& facts = result.kept->facts;
        const auto soft = self.target_.options.soft_expiry.value_or(std::chrono::seconds(0));
        const auto decision =
            decide_reuse(self.facts_, result.kept->response.fields, facts.as_of, now, soft);
        if (decision == reuse::none) return self.begin();
        if (decision == reuse::refresh) facts.cause = cause_code::refreshing;
        self.answer_stored(*result.kept, decision == reuse::young);
      });
  if (!posted) begin();
}

void gateway_call::answer_stored(const kept_response& kept, bool is_young) {
  auto response =
      kept_answer(rules_, asked(), kept.response, kept.facts,
                  {.hit = true, .detail = is_young ? "" : "refreshing"}, runtime_->now());
  if (is_young) return answer(std::move(response), outcome::fresh);
  log_answer(outcome::fresh, response.status, response.body.size());
  take_responder().answer(std::move(response));
  // The same request goes on without a client, unless another one does already.
  begin();
}

void gateway_call::begin() {
  if (!protected_) return ask();
  bool is_allowed = true;
  try {
    auto call = target_.point.begin(arguments_of(key_text_));
    as_of_ = call.as_of();
    is_allowed = call.allowed();
    pending_.emplace(std::move(call));
  } catch (const error&) {
    return answer(problem_response(503, "the gateway is stopping"), outcome::unserved);
  }
  if (!is_allowed) {
    const bool open =
        runtime_->options().engine->status(rules_.name).breaker == breaker_state::open;
    return recover({.cause = cause_code::refused,
                    .status = 503,
                    .detail = open ? "breaker-open" : "limit",
                    .asked = false});
  }
  join_or_ask();
}

void gateway_call::join_or_ask() {
  const bool shares = target_.options.single_flight || !answer_;
  if (!shares || method_ != "GET" || !conditions_.fields().empty()) return ask();
  leads_ = runtime_->shared().lead_or_follow(
      shared_id(),
      [weak = weak_from_this(), loop = loop_->shared_loop()](const shared_result& result) {
        (void)loop->post([weak, result] {
          const auto self = weak.lock();
          if (self && self->state_ == state::starting) self->follow(result);
        });
      });
  if (leads_) return ask();
  if (!answer_) return end(outcome::fresh, 0, 0);  // another request refreshes it
  timer_.set_callback(
      [this] { fail({.cause = cause_code::late, .status = 504, .detail = "late"}); });
  timer_.set(deadline_);
}

void gateway_call::follow(const shared_result& result) {
  timer_.cancel();
  if (!result) return ask();
  const auto& shared = *result;
  if (shared.failure) return fail(*shared.failure);
  if (!shared.response) return ask();
  const auto& response = *shared.response;
  status_ = response.status;
  fields_ = response.fields;
  content_ = response.content;
  (void)take_pending().succeed(point_value{.keep = false});
  answer_live({.forwarded = forward_reason::miss, .collapsed = true});
}

std::string gateway_call::shared_id() const { return rules_.name + '\n' + key_text_; }

// Asking.

void gateway_call::ask() {
  const auto chosen = servers_.choose(tried_);
  if (!chosen) {
    // A retry may go to a server that failed before.
    tried_ = 0;
    return ask();
  }
  server_ = *chosen;
  tried_ |= std::uint64_t{1} << server_;
  ++attempts_;
  if (target_.retry && attempts_ == 1) target_.retry->record_call();
  state_ = state::asking;
  try {
    call_ = servers_.server(server_).stream({.method = method_,
                                             .target = target_text_,
                                             .fields = forwarded_,
                                             .body = body_,
                                             .host = host_},
                                            deadline_, *this);
  } catch (const error& problem) {
    pending_.reset();
    answer(problem_response(400, "the request cannot be forwarded: " + problem.message()),
           outcome::refused);
  }
}

bool gateway_call::may_ask_again(const upstream_failure& reason, bool sent) const {
  if (loop_->loop().now() >= deadline_ || reason.cause == cause_code::late) return false;
  const bool has_other = (~tried_ & ((std::uint64_t{1} << servers_.size()) - 1)) != 0;
  // Nothing was sent: another server can be asked whatever the method is.
  if (!sent && reason.detail == "unreachable" && has_other) return true;
  return target_.retry != nullptr && is_idempotent(method_);
}

void gateway_call::ask_again(const upstream_failure& reason, bool sent) {
  if (!may_ask_again(reason, sent)) return fail(reason);
  const bool has_other = (~tried_ & ((std::uint64_t{1} << servers_.size()) - 1)) != 0;
  std::chrono::microseconds pause{};
  if (sent || !has_other) {
    const auto next = target_.retry->next(attempts_);
    if (next.refused_by != failover::retry_plan::refusal::none) return fail(reason);
    pause = has_other ? std::chrono::microseconds::zero() : next.pause;
  }
  status_ = 0;
  fields_ = {};
  content_.clear();
  content_bytes_ = 0;
  announced_.reset();
  is_failing_ = false;
  if (pause.count() == 0) return ask();
  timer_.set_callback([this] { ask(); });
  timer_.set(std::min(deadline_, loop_->loop().now() + pause));
}

void gateway_call::on_head(const http::response_head& head) {
  state_ = state::holding;
  status_ = head.status;
  fields_ = passed_response(head.fields);
  if (!fields_.has("date"))
    fields_.add("Date",
                http::format_date(std::chrono::floor<std::chrono::seconds>(runtime_->now())));
  if (const auto length = head.fields.find("content-length"))
    announced_ = http::parse_digits(*length);
  is_failing_ = protected_ && is_failure(rules_, status_);
  // What comes now and then would be held until the deadline.
  const bool has_content = head.content != http::framing::none && method_ != "HEAD";
  const bool is_large = announced_.value_or(0) > rules_.hold;
  if (!is_failing_ && has_content && (is_large || rules_.hold == 0 || is_event_stream())) commit();
}

bool gateway_call::is_event_stream() const {
  const auto type = fields_.find("content-type");
  return type && http::equals_ignoring_case(type->substr(0, 17), "text/event-stream");
}

void gateway_call::on_content(std::string_view piece) {
  if (state_ == state::ended) return;
  content_bytes_ += piece.size();
  if (state_ == state::streaming) return write_piece(piece);
  content_.append(piece);
  if (state_ != state::holding || content_.size() <= rules_.hold) return;
  if (!is_failing_) return commit();
  if (std::exchange(is_paused_, true)) return;
  // A large response that is a failure: it is only needed if nothing else can be given.
  call_.pause();
  recover({.status = status_});
}

void gateway_call::on_end(client_response end_of_response) {
  if (state_ == state::ended) return;
  const bool complete = end_of_response.result == exchange_status::complete;
  servers_.report(server_, complete && !is_failing_);
  if (state_ == state::streaming) return finish_stream(complete);
  if (state_ == state::recovering) {
    is_response_over_ = true;  // a large failure
    is_response_whole_ = complete;
    return;
  }
  if (complete && status_ != 101) {
    if (!is_failing_) return finish_live();
    return ask_again({.status = status_}, true);
  }
  upstream_failure reason{.detail = "malformed"};
  switch (end_of_response.result) {
    case exchange_status::unreachable:
      reason.detail = "unreachable";
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

// A good response.

/// The response is larger than what is held: from now on a failure cannot be replaced.
void gateway_call::commit() {
  state_ = state::streaming;
  finish_shared(nullptr);
  const auto& loop = loop_->loop();
  streaming_since_ = loop.now();
  call_.set_deadline(transfer_deadline());
  const auto decision = protected_ ? decide_keep(rules_, facts_, status_, fields_,
                                                 static_cast<std::size_t>(announced_.value_or(0)))
                                   : keep_decision{.reason = "method"};
  is_gathering_ = decision.action == keep_action::keep && !is_event_stream();
  const auto held = is_gathering_ ? content_ : std::exchange(content_, {});
  if (!answer_) return;  // a refresh
  if (is_not_modified(asked(), status_, fields_, runtime_->now())) {
    auto response =
        live_answer(rules_, asked(), status_, fields_, {},
                    {.forwarded = forward_reason::bypass, .detail = "streamed"}, runtime_->now());
    log_answer(outcome::live, 304, 0);
    take_responder().answer(std::move(response));
    return;
  }
  const auto detail = decision.reason.empty() ? std::string_view("streamed") : decision.reason;
  auto response = live_answer(rules_, asked(), status_, fields_, held,
                              is_read_ ? http::cache_status{.forwarded = forward_reason::bypass,
                                                            .detail = std::string(detail)}
                                       : http::cache_status{.forwarded = forward_reason::method},
                              runtime_->now());
  stream_answer(std::move(response), held.size());
}

void gateway_call::stream_answer(server_response response, std::size_t held) {
  unsent_ = held;
  answer_stream_options options{.max_queued = std::size_t{16} << 20U,
                                .completes = true,
                                .content_length = announced_,
                                .until_close = true,
                                .on_progress = [weak = weak_from_this()] {
                                  if (const auto self = weak.lock()) self->on_client_progress();
                                }};
  stream_ = take_responder().begin_stream(std::move(response), std::move(options));
  if (!stream_->is_open()) give_up_client();
}

void gateway_call::on_client_progress() {
  unsent_ = 0;
  if (state_ != state::streaming || is_writing_) return;
  if (stream_ && !stream_->is_open()) return give_up_client();
  if (!std::exchange(is_paused_, false)) return;
  paused_time_ += loop_->loop().now() - paused_since_;
  call_.set_deadline(transfer_deadline());
  call_.resume();
}

steady::time_point gateway_call::transfer_deadline() const {
  // Events come when they happen.
  if (is_event_stream()) return steady::time_point::max();
  return streaming_since_ + paused_time_ + transfer_reserve +
         std::chrono::milliseconds(content_bytes_);
}

void gateway_call::write_piece(std::string_view piece) {
  if (is_gathering_) {
    if (content_.size() + piece.size() > rules_.max_payload) {
      is_gathering_ = false;
      std::string().swap(content_);
    } else {
      content_.append(piece);
    }
  }
  if (stream_) {
    is_writing_ = true;
    const bool is_open = stream_->write(piece);
    is_writing_ = false;
    if (!is_open) return give_up_client();
    unsent_ += piece.size();
    if (unsent_ > most_unsent && !std::exchange(is_paused_, true)) {
      paused_since_ = loop_->loop().now();
      call_.set_deadline(steady::time_point::max());
      call_.pause();
      return;
    }
  }
  call_.set_deadline(transfer_deadline());
}

/// The client is gone, so the rest of the response is not needed.
void gateway_call::give_up_client() {
  call_.cancel();
  pending_.reset();
  end(outcome::cut, status_, content_bytes_);
}

/// What the engine gets for a response that was received completely.
point_value gateway_call::value_of(const keep_decision& decision) const {
  point_value value{.response = {.target = masked_target(target_text_)},
                    .form = runtime_->options().form,
                    .keep = decision.action != keep_action::pass};
  if (decision.action == keep_action::keep) {
    value.expires = keep_until(rules_, fields_, target_.options.expiry, as_of_);
    if (value.expires > as_of_) {
      value.response.status = status_;
      value.response.fields = fields_;
      value.response.content = content_;
      return value;
    }
  }
  value.response.invalid =
      std::string(decision.reason.empty() ? std::string_view("expired") : decision.reason);
  value.expires = longest_expiry(rules_, target_.options.expiry, as_of_);
  return value;
}

void gateway_call::finish_live() {
  if (!protected_) {
    note_invalidations();
    if (!stale_targets_.empty()) return invalidate_and_answer();
    return answer_live({.forwarded = is_read_ ? forward_reason::bypass : forward_reason::method});
  }
  const auto decision = decide_keep(rules_, facts_, status_, fields_, content_.size());
  keep_and_answer(value_of(decision), decision);
}

void gateway_call::keep_and_answer(point_value value, keep_decision decision) {
  const bool is_kept = decision.action == keep_action::keep && value.response.invalid.empty();
  const bool is_expired = decision.action == keep_action::keep && !is_kept;
  http::cache_status report{.forwarded = is_kept ? forward_reason::miss : forward_reason::bypass,
                            .stored = is_kept,
                            .detail = is_expired ? "expired" : std::string(decision.reason)};
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
        return !is_kept || runtime_->is_stored(target_, key_text_, as_of_);
      },
      [report](gateway_call& self, bool is_stored) {
        if (is_stored) self.answer_live(report);
        else self.answer_live({.forwarded = forward_reason::bypass, .detail = "store-failed"});
      });
  if (!posted) answer_live({.forwarded = forward_reason::bypass, .detail = "busy"});
}

/// RFC 9111, section 4.4: those of the request, and of Location and Content-Location if they are of
/// the same origin.
void gateway_call::note_invalidations() {
  if (request_target_.empty() || status_ >= 400) return;
  const auto add = [&](std::string_view target) {
    if (auto entry = runtime_->invalidation_of(request_host_, target))
      stale_targets_.push_back(*std::move(entry));
  };
  add(request_target_);
  for (const auto name : {"location", "content-location"}) {
    if (const auto value = fields_.find(name))
      add(target_in_origin(*value, request_host_, request_target_));
  }
}

void gateway_call::invalidate_and_answer() {
  const auto invalidate = [this] {
    try {
      runtime_->invalidate(stale_targets_);
    } catch (const error&) {
      return false;
    }
    return true;
  };
  const http::cache_status report{.forwarded = forward_reason::method};
  const auto finish = [report](gateway_call& self, bool invalidated) {
    auto described = report;
    if (!invalidated) described.detail = "not-invalidated";
    self.answer_live(described);
  };
  if (!runtime_->keeping_waits(target_)) return finish(*this, invalidate());
  if (!run_on_worker(invalidate, finish)) finish(*this, false);
}

void gateway_call::answer_live(const http::cache_status& report) {
  if (!answer_) return end(outcome::live, status_, content_.size());
  auto response =
      live_answer(rules_, asked(), status_, fields_, std::move(content_), report, runtime_->now());
  if (method_ == "HEAD") {
    response.head_length = announced_;
    response.unknown_length = !announced_;
  }
  answer(std::move(response), outcome::live);
}

void gateway_call::finish_stream(bool complete) {
  if (!complete) {
    // The client must not take a part of the content for all of it.
    stream_.reset();
    if (!pending_) return end(outcome::cut, status_, content_bytes_);
    report_failure();
    return end(outcome::cut, status_, content_bytes_);
  }
  if (stream_) stream_->close();
  if (pending_) {
    const auto decision =
        is_gathering_
            ? decide_keep(rules_, facts_, status_, fields_, content_.size())
            : decide_keep(rules_, facts_, status_, fields_,
                          is_event_stream() ? 0 : static_cast<std::size_t>(content_bytes_));
    keep_streamed(value_of(decision));
  } else {
    note_invalidations();
    if (!stale_targets_.empty())
      (void)runtime_->post([runtime = runtime_, targets = std::move(stale_targets_)] {
        runtime->invalidate(targets);
      });
  }
  end(outcome::live, status_, content_bytes_);
}

/// The client has its answer already.
void gateway_call::keep_streamed(point_value value) {
  if (is_event_stream()) value.keep = false;
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
  (void)runtime_->post([runtime = runtime_, &target = target_, facts = facts_,
                        call = std::make_shared<pending_value>(take_pending())] {
    (void)runtime->recover(target, std::move(*call), facts, {}, cause_code::failed);
  });
}

// A failure.

void gateway_call::fail(const upstream_failure& reason) {
  if (pending_) return recover(reason);
  if (status_ != 0 && reason.detail.empty()) return pass_failure(reason, {});
  answer_unserved(reason, {});
}

void gateway_call::recover(const upstream_failure& reason) {
  state_ = state::recovering;
  timer_.cancel();
  if (leads_)
    finish_shared(std::make_shared<const shared_outcome>(shared_outcome{.failure = reason}));
  auto call = std::make_shared<pending_value>(take_pending());
  const bool posted = run_on_worker(
      [this, call, cause = reason.cause] {
        return runtime_->recover(target_, std::move(*call), facts_, invalidation_key_, cause);
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
  answer(kept_answer(rules_, asked(), result.kept->response, result.kept->facts, std::move(report),
                     runtime_->now()),
         outcome::stale);
}

/// Passes on what the upstream said, if it said anything.
void gateway_call::pass_failure(const upstream_failure& reason, const std::string& refusal) {
  if (status_ == 0 || !reason.detail.empty()) return answer_unserved(reason, refusal);
  const http::cache_status report{
      .forwarded = is_read_ ? forward_reason::miss : forward_reason::method,
      .forwarded_status = reason.status,
      .detail = refusal};
  if (is_response_over_ && !is_response_whole_) return answer_unserved(reason, refusal);
  const auto held = content_.size();
  auto response =
      live_answer(rules_, asked(), status_, fields_, std::move(content_), report, runtime_->now());
  if (!is_paused_ || is_response_over_) {
    if (method_ == "HEAD") {
      response.head_length = announced_;
      response.unknown_length = !announced_;
    }
    return answer(std::move(response), outcome::unserved);
  }
  // It is larger than what is held.
  state_ = state::streaming;
  is_paused_ = false;
  is_gathering_ = false;
  streaming_since_ = loop_->loop().now();
  stream_answer(std::move(response), held);
  call_.set_deadline(transfer_deadline());
  call_.resume();
}

void gateway_call::answer_unserved(const upstream_failure& reason, const std::string& refusal) {
  std::string text = "the upstream failed";
  if (!reason.detail.empty()) text += ": " + std::string(reason.detail);
  if (!refusal.empty()) text += "; nothing else can be given: " + refusal;
  auto response = problem_response(reason.status, text);
  if (reason.status == 503) response.fields.add("Retry-After", "1");
  add_cache_status(rules_, address_,
                   {.forwarded = is_read_ ? forward_reason::miss : forward_reason::method,
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
       .method = method_,
       .path = target_text_,
       .address = address_,
       .status = status,
       .received = body_.size(),
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
  stream_.reset();
  pending_.reset();
  answer_.reset();
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
