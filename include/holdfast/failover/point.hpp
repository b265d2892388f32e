#pragma once

/// \file
/// A point: a protected call. It has the parameters of its callable and returns an answer.

#include <holdfast/failover/answer.hpp>
#include <holdfast/failover/call.hpp>
#include <holdfast/failover/core.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/key/value.hpp>
#include <holdfast/result.hpp>
#include <holdfast/version.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// The arguments of a call that are known only at run time. A point with this as its only parameter
/// has the key of a call with these arguments; a server uses it for calls of other programs.
struct run_time_arguments {
  std::vector<key::value> values{};
};

/// A call in two phases, for callbacks and coroutines: the caller calls the upstream and reports
/// the outcome. A call that is destroyed without an outcome counts as abandoned and stores nothing.
///
/// Deadline, retries, soft expiry and single flight of the point do not apply. `allowed()` reports
/// the decision of breaker and concurrency limit.
/// Thread-safety: one thread at a time; different phases may run on different threads.
template <class T>
class pending {
 public:
  pending(pending&&) noexcept = default;
  pending& operator=(pending&& other) noexcept {
    drop();
    call_ = std::move(other.call_);
    values_ = std::move(other.values_);
    refusal_ = std::move(other.refusal_);
    return *this;
  }
  ~pending() { drop(); }

  /// False if the breaker is open or the concurrency limit is reached. Then do not call the
  /// upstream; call `fail()` to get an answer from the store.
  [[nodiscard]] bool allowed() const noexcept { return !refusal_; }
  /// Start of the call, which is the version of its answer.
  [[nodiscard]] timestamp as_of() const { return call().provenance.as_of; }

  /// The upstream was called earlier than `begin`, by another program: its answer has this version,
  /// and expires as if it had come then. Throws errc::invalid_argument for a time in the future.
  void set_start(timestamp as_of) {
    if (as_of > call().now)
      throw error(errc::invalid_argument, "a call cannot have started in the future",
                  {.path = "as_of"});
    call().now = as_of;
    call().provenance.as_of = as_of;
  }

  /// For a call that a drill selects: returns the kept answer, which is then the outcome of this
  /// call. Otherwise, or if nothing is kept, returns nothing: call the upstream. Reads the store
  /// only if a drill selects the call; then it may wait.
  [[nodiscard]] std::optional<answer<T>> rehearse() {
    if (refusal_ || !detail::failover::finish_in_drill(values_->core, call())) return std::nullopt;
    const auto finished = take_call();
    return answer<T>{std::move(finished->value), std::move(finished->provenance)};
  }

  /// Reports the result of the upstream; an empty optional means that there is nothing. Stores it
  /// and returns it. Throws errc::invalid_argument if the call already has an outcome.
  answer<T> succeed(std::optional<T> value) {
    const auto call = take_call();
    call->value = std::move(value);
    detail::failover::finish_live(values_->core, *call);
    return {std::move(call->value), std::move(call->provenance)};
  }
  /// Reports a failure. Returns the last good answer, or throws according to the policy of the
  /// point: by default this exception. Throws errc::invalid_argument as `succeed`.
  answer<T> fail(std::exception_ptr error = nullptr) {
    if (refusal_) return finish_failed(refusal_, cause_code::refused);
    if (!error)
      error = std::make_exception_ptr(
          holdfast::error(errc::unavailable, "the upstream failed without an exception"));
    return finish_failed(std::move(error), cause_code::failed);
  }
  /// As `fail`, for a caller that stopped waiting for the upstream.
  answer<T> fail_late() {
    return finish_failed(
        std::make_exception_ptr(holdfast::error(
            errc::timeout, "the upstream did not answer in time", {.transient = true})),
        cause_code::late);
  }

 private:
  template <class>
  friend class point;
  using value_call = detail::failover::value_call<T>;
  using typed_values = detail::failover::typed_values<T>;
  pending(std::shared_ptr<const typed_values> values, std::unique_ptr<value_call> call,
          std::exception_ptr refusal)
      : values_(std::move(values)), call_(std::move(call)), refusal_(std::move(refusal)) {}

  value_call& call() const {
    if (!call_) throw error(errc::invalid_argument, "this call already has an outcome");
    return *call_;
  }
  std::unique_ptr<value_call> take_call() {
    (void)call();
    return std::move(call_);
  }
  answer<T> finish_failed(std::exception_ptr error, cause_code code) {
    const auto call = take_call();
    detail::failover::finish_failed(values_->core, *call, std::move(error), code);
    return {std::move(call->value), std::move(call->provenance)};
  }
  void drop() noexcept {
    if (call_) detail::failover::abandon(values_->core, *std::exchange(call_, nullptr));
  }

  std::shared_ptr<const typed_values> values_;
  std::unique_ptr<value_call> call_;
  std::exception_ptr refusal_;
};

template <class Signature>
class point;

/// Made by engine::protect. Copies share the same point, which lives as long as its last copy.
/// After the engine was closed, calls throw errc::unavailable.
///
/// Thread-safety: every function may be called from any thread. The callable is called from several
/// threads at once.
/// Exceptions: what the failure rules and the exception policy of the point let through; by default
/// the exception of the upstream.
template <class R, class... A>
class point<R(A...)> {
 public:
  using value_type = typename detail::failover::payload_of<R>::type;
  using answer_type = answer<value_type>;

  /// Calls the upstream. If that fails, answers from the store.
  answer_type operator()(A... args) const {
    using detail::failover::call_mode;
    const auto& core = state_->core;
    const auto mode = detail::failover::mode_of(*core);
    // A point with a deadline is refused at registration if its arguments cannot be copied.
    if constexpr (detail::failover::ownable<A...>) {
      if (mode == call_mode::on_executor ||
          (time_limit_.count() != 0 && mode == call_mode::on_caller))
        return call_owned(args...);
    }
    detail::failover::stack_call<R, A...> call(state_, static_cast<A&&>(args)...);
    if (mode == call_mode::bypass) {
      detail::failover::run_bypassed(*core, call);
    } else {
      make_key(call, args...);
      detail::failover::start(*core, call);
      detail::failover::run(core, call);
    }
    return {std::move(call.value), std::move(call.provenance)};
  }

  /// As operator(), but returns an exception instead of throwing it.
  result<answer_type> try_call(A... args) const noexcept {
    try {
      return (*this)(static_cast<A&&>(args)...);
    } catch (...) {
      return std::current_exception();
    }
  }

  /// A copy whose calls take at most `limit`, recovery included, or the deadline of the point if
  /// that is shorter: `point.within(200ms)(args)`. Zero or less: as the point.
  [[nodiscard]] point within(std::chrono::microseconds limit) const {
    static_assert(detail::failover::ownable<A...>,
                  "holdfast: within needs arguments that can be copied: the call owns them");
    auto limited = *this;
    limited.time_limit_ = std::max(limit, std::chrono::microseconds::zero());
    return limited;
  }

  /// Returns what would be served if the upstream failed now, or nothing. Does not call the
  /// upstream.
  [[nodiscard]] std::optional<answer_type> peek(A... args) const {
    detail::failover::value_call<value_type> call(*state_);
    make_key(call, args...);
    if (!detail::failover::peek_stored(state_->core, call)) return std::nullopt;
    return answer_type(std::move(call.value), std::move(call.provenance));
  }
  /// Stores a value as if the upstream had returned it now. An empty optional means that there is
  /// nothing. Throws if it could not be stored.
  void prime(A... args, std::optional<value_type> value) const {
    detail::failover::value_call<value_type> call(*state_);
    make_key(call, args...);
    call.value = std::move(value);
    detail::failover::prime_stored(state_->core, call);
  }
  /// The stored answer is wrong: it is not served any more. What is stored instead says that there
  /// is nothing; see "There is nothing" in docs/failover.md. Throws what the store throws.
  void invalidate(A... args) const {
    detail::failover::value_call<value_type> call(*state_);
    make_key(call, args...);
    detail::failover::invalidate_stored(state_->core, call);
  }
  /// Removes the stored answer from memory, from the queue and from the store, for example because
  /// a person asked for it. Nothing is left when this returns. A call that is running may store its
  /// answer afterwards. Throws errc::timeout at the deadline, and what the store throws.
  void erase(A... args, std::chrono::steady_clock::time_point deadline) const {
    detail::failover::value_call<value_type> call(*state_);
    make_key(call, args...);
    detail::failover::erase_stored(state_->core, call, deadline);
  }

  /// Begins a call in two phases. Throws errc::unavailable if the engine is closed.
  [[nodiscard]] pending<value_type> begin(A... args) const {
    auto call = std::make_unique<detail::failover::value_call<value_type>>(*state_);
    make_key(*call, args...);
    detail::failover::start(*state_->core, *call);
    auto refusal = detail::failover::admit(state_->core, *call);
    return {state_, std::move(call), std::move(refusal)};
  }

 private:
  friend class engine;
  static constexpr bool at_run_time =
      sizeof...(A) == 1 && (std::is_same_v<std::remove_cvref_t<A>, run_time_arguments> && ...);
  using state = detail::failover::typed_point<R, A...>;
  explicit point(std::shared_ptr<const state> point_state) : state_(std::move(point_state)) {}

  /// Runs once, before the upstream is called: the upstream may change its arguments.
  void make_key(detail::failover::call_base& call,
                const std::remove_reference_t<A>&... args) const {
    const auto& core = *state_->core;
    try {
      const auto& keys = detail::failover::keys_of(core);
      if constexpr (at_run_time) {
        auto raw = keys.raw_of(std::get<0>(std::tie(args...)).values);
        call.key = detail::failover::varies(core)
                       ? detail::failover::varied_key(core, std::move(raw))
                       : keys.of_raw(raw);
      } else if (detail::failover::varies(core)) {
        call.key = detail::failover::varied_key(core, keys.raw(args...));
      } else {
        call.key = keys(args...);
      }
    } catch (...) {
      detail::failover::record_missing_key(core, call);
    }
  }

  answer_type call_owned(const std::remove_reference_t<A>&... args) const {
    auto call = std::make_shared<detail::failover::owned_call<R, A...>>(state_, args...);
    make_key(*call, args...);
    call->time_limit = time_limit_;
    detail::failover::start(*state_->core, *call);
    detail::failover::value_call<value_type> result(*state_);
    detail::failover::run_owned(state_->core, call, result);
    return {std::move(result.value), std::move(result.provenance)};
  }

  std::shared_ptr<const state> state_;
  std::chrono::microseconds time_limit_{};
};

}  // namespace HOLDFAST_NAMESPACE
