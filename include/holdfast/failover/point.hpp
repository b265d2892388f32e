#pragma once

/// \file
/// A point: a call that is protected. It is called like the function it protects, and gives an answer.

#include <holdfast/failover/answer.hpp>
#include <holdfast/failover/call.hpp>
#include <holdfast/failover/core.hpp>
#include <holdfast/result.hpp>
#include <holdfast/version.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace HOLDFAST_NAMESPACE {

/// A call in two phases, for callbacks and coroutines: it has begun, and somebody will say how it ended. Dropped without that, it counts as
/// abandoned, and nothing is stored.
///
/// Deadlines, retries, soft expiry and single flight belong to who calls the upstream, here: the caller. Breaker and concurrency limit are
/// asked by `allowed()`.
/// Thread-safety: one thread at a time; it may be another one than that which began it. May be moved.
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

  /// False: do not call the upstream (the breaker is open, or too many calls run); call `fail()` to be answered from the store.
  [[nodiscard]] bool allowed() const noexcept { return !refusal_; }
  /// The moment at which it began: the version of its answer.
  [[nodiscard]] timestamp as_of() const { return call().from.as_of; }

  /// The upstream answered; an empty optional says that there is nothing. Stores it and gives it back.
  /// Throws errc::invalid_argument when the call has an outcome already.
  answer<T> succeed(std::optional<T> value) {
    const auto mine = finish();
    mine->value = std::move(value);
    detail::finish_live(values_->core, *mine);
    return {std::move(mine->value), std::move(mine->from)};
  }
  /// The upstream failed. Gives the last good answer or throws what the point's policy says, by default this very exception.
  answer<T> fail(std::exception_ptr error = nullptr) {
    const auto mine = finish();
    auto code = cause_code::failed;
    if (refusal_) {
      error = refusal_;
      code = cause_code::refused;
    }
    if (!error) error = std::make_exception_ptr(holdfast::error(errc::unavailable, "the upstream failed and did not say why"));
    detail::finish_failed(values_->core, *mine, std::move(error), code);
    return {std::move(mine->value), std::move(mine->from)};
  }
  /// The same for a caller that gave up waiting.
  answer<T> fail_late() {
    const auto mine = finish();
    detail::finish_failed(
        values_->core, *mine,
        std::make_exception_ptr(holdfast::error(errc::timeout, "the upstream did not answer in time", {.transient = true})),
        cause_code::late);
    return {std::move(mine->value), std::move(mine->from)};
  }

 private:
  template <class>
  friend class point;
  pending(std::shared_ptr<const detail::typed_values<T>> values, std::unique_ptr<detail::value_call<T>> call, std::exception_ptr refusal)
      : values_(std::move(values)), call_(std::move(call)), refusal_(std::move(refusal)) {}

  detail::value_call<T>& call() const {
    if (!call_) throw error(errc::invalid_argument, "this call has an outcome already");
    return *call_;
  }
  std::unique_ptr<detail::value_call<T>> finish() {
    (void)call();
    return std::move(call_);
  }
  void drop() noexcept {
    if (call_) detail::abandon(values_->core, *std::exchange(call_, nullptr));
  }

  std::shared_ptr<const detail::typed_values<T>> values_;
  std::unique_ptr<detail::value_call<T>> call_;
  std::exception_ptr refusal_;
};

template <class Signature>
class point;

/// Made by engine::protect. A handle: copies share the same point, which lives as long as one of them does; calling it after the engine
/// was closed is an error.
///
/// Thread-safety: every function may be called from any thread; the callable is called from several at once.
/// Exception safety: what leaves is what the point's rules and policy let leave: by default the upstream's own exception.
template <class R, class... A>
class point<R(A...)> {
 public:
  using value_type = typename detail::payload_of<R>::type;
  using answer_type = answer<value_type>;

  /// Calls the upstream, or answers for it.
  answer_type operator()(A... args) const {
    using detail::way;
    const auto& core = state_->core;
    switch (detail::way_of(*core)) {
      case way::plain:
        break;
      case way::owned:
        if constexpr (detail::ownable<A...>) {
          return call_owned(args...);
        } else {
          break;  // refused when the point was registered
        }
      case way::bypass: {
        detail::stack_call<R, A...> call(state_, static_cast<A&&>(args)...);
        detail::run_bypassed(*core, call);
        return {std::move(call.value), std::move(call.from)};
      }
    }
    detail::stack_call<R, A...> call(state_, static_cast<A&&>(args)...);
    make_key(call, args...);
    detail::start(*core, call);
    detail::run(core, call);
    return {std::move(call.value), std::move(call.from)};
  }

  /// The same without exceptions: the result holds the answer, or the exception that would have left.
  result<answer_type> try_call(A... args) const noexcept {
    try {
      return (*this)(static_cast<A&&>(args)...);
    } catch (...) {
      return std::current_exception();
    }
  }

  /// Begins a call whose upstream the caller calls. Throws errc::unavailable when the engine is closed.
  [[nodiscard]] pending<value_type> begin(A... args) const {
    auto call = std::make_unique<detail::value_call<value_type>>(*state_);
    make_key(*call, args...);
    detail::start(*state_->core, *call);
    auto refusal = detail::ask(state_->core, *call);
    return {state_, std::move(call), std::move(refusal)};
  }

 private:
  friend class engine;
  explicit point(std::shared_ptr<const detail::typed_point<R, A...>> state) : state_(std::move(state)) {}

  /// Once, before the call: an upstream that changes its arguments does not change the key.
  void make_key(detail::call_base& call, const std::remove_reference_t<A>&... args) const {
    const auto& core = *state_->core;
    try {
      const auto& keys = detail::keys_of(core);
      if (detail::varies(core)) call.key = detail::varied_key(core, keys.raw(args...));
      else call.key = keys(args...);
    } catch (...) {
      detail::unkeyed(core, call);
    }
  }

  answer_type call_owned(const std::remove_reference_t<A>&... args) const {
    auto call = std::make_shared<detail::owned_call<R, A...>>(state_, args...);
    make_key(*call, args...);
    detail::start(*state_->core, *call);
    detail::value_call<value_type> mine(*state_);
    detail::run_owned(state_->core, call, mine);
    return {std::move(mine.value), std::move(mine.from)};
  }

  std::shared_ptr<const detail::typed_point<R, A...>> state_;
};

}  // namespace HOLDFAST_NAMESPACE
