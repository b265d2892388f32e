#pragma once

/// \file
/// Calls whose answers have parts in a shape of their own, such as a page with a header, a tree, or
/// a map of maps. A splitter divides such an answer into slices and merges slices into an answer.

#include <holdfast/failover/answer.hpp>
#include <holdfast/failover/gather.hpp>
#include <holdfast/failover/list.hpp>
#include <holdfast/result.hpp>
#include <holdfast/version.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// A slice to store: the arguments of the single call that would return it, and its value.
template <class T, class... K>
struct stored_slice {
  std::tuple<K...> args;
  std::optional<T> value;  ///< empty: a tombstone
};

/// A slice that was recovered, or is missing.
template <class T, class... K>
struct recovered_slice {
  /// Arguments from on_recover; empty if a manifest named the slice.
  std::optional<std::tuple<K...>> args{};
  std::optional<T> value{};  ///< empty: missing, or known not to exist
  holdfast::provenance provenance{};
  bool missing = false;
};

/// How an answer R to the arguments A consists of slices T. Each slice has the key of a single call
/// with the arguments K.
///
/// on_store and on_recover must use the same arguments, else a stored slice is never found. The
/// engine checks this for the first live answers of a point; it counts a difference
/// (point_numbers::asymmetric) and logs it.
/// The functions run on the thread of the call, from several threads at once. Exceptions are
/// counted and logged: if on_store throws, the answer is returned but not stored; if another
/// function throws, nothing is served.
template <class Signature, class T, class... K>
struct splitter;
template <class R, class... A, class T, class... K>
struct splitter<R(A...), T, K...> {
  /// Returns the slices of a live answer.
  std::function<std::vector<stored_slice<T, K...>>(const R& whole,
                                                   const detail::failover::owned_t<A>&... args)>
      on_store{};
  /// Returns the arguments of the slices of an answer. Without this function the engine stores a
  /// manifest, as for protect_list.
  std::function<std::vector<std::tuple<K...>>(const detail::failover::owned_t<A>&... args)>
      on_recover{};
  /// Merges recovered slices, in the order of on_recover or of the manifest. Returns nothing if the
  /// answer cannot be served.
  std::function<std::optional<R>(std::vector<recovered_slice<T, K...>> slices,
                                 const detail::failover::owned_t<A>&... args)>
      merge{};
};

namespace detail::failover {

template <class Signature, class T, class... K>
struct split_state;
template <class R, class... A, class T, class... K>
struct split_state<R(A...), T, K...> {
  std::shared_ptr<typed_values<T>> values;
  std::function<R(const call_context&, const std::tuple<owned_t<A>...>&)> upstream;
  holdfast::splitter<R(A...), T, K...> splitter;
};

template <class Signature, class T, class... K>
class split_call;
template <class R, class... A, class T, class... K>
class split_call<R(A...), T, K...> final : public gather_call<T> {
 public:
  using state = split_state<R(A...), T, K...>;
  split_call(std::shared_ptr<const state> point_state, const std::remove_reference_t<A>&... args)
      : gather_call<T>(point_state->values),
        state_(std::move(point_state)),
        args_(owned_copy<A>(args)...) {
    this->listed = !state_->splitter.on_recover;
    this->whole_is_separate = true;
  }

  void invoke(const call_context& context) override {
    whole.emplace(state_->upstream(context, args_));
  }
  void split_live() override {
    this->clear();
    auto parts = std::apply(
        [&](const auto&... args) { return state_->splitter.on_store(*whole, args...); }, args_);
    for (auto& part : parts) {
      this->add(key_of_id(this->point(), *this, part.args)).state = slice_state::live;
      this->value(this->slices.size() - 1) = std::move(part.value);
    }
  }
  void split_for_recovery() override {
    this->clear();
    slice_args_ = arguments_of_slices();
    for (const auto& args : slice_args_) this->add(key_of_id(this->point(), *this, args));
  }
  [[nodiscard]] std::vector<std::string> keys_for_recovery() override {
    std::vector<std::string> keys;
    for (const auto& args : arguments_of_slices())
      keys.push_back(key_of_id(this->point(), *this, args));
    return keys;
  }
  [[nodiscard]] bool merge() override {
    std::vector<recovered_slice<T, K...>> parts;
    for (std::size_t i = 0; i < this->slices.size(); ++i) {
      const auto& recovered = this->slices[i];
      const bool missing = is_missing(recovered.state);
      if (missing && drops_missing(this->point())) continue;
      auto& part = parts.emplace_back();
      if (!this->listed) part.args = slice_args_[i];
      part.value = this->value(i);
      part.provenance = recovered.call->provenance;
      part.missing = missing;
    }
    if (parts.empty() && !this->listed) return false;
    whole = std::apply(
        [&](const auto&... args) { return state_->splitter.merge(std::move(parts), args...); },
        args_);
    return whole.has_value();
  }
  void make_empty() noexcept override {
    gather_call<T>::make_empty();
    whole.reset();
  }
  void set_default_value() override {
    gather_call<T>::set_default_value();
    (void)merge();
  }
  bool call_unserved_hook() override {
    if (!gather_call<T>::call_unserved_hook()) return false;
    (void)merge();
    return true;
  }
  void move_result(call_base& finished) noexcept override {
    gather_call<T>::move_result(finished);
    whole = std::move(static_cast<split_call&>(finished).whole);
  }

  std::optional<R> whole{};

 private:
  [[nodiscard]] std::vector<std::tuple<K...>> arguments_of_slices() const {
    return std::apply([&](const auto&... args) { return state_->splitter.on_recover(args...); },
                      args_);
  }

  const std::shared_ptr<const state> state_;
  const std::tuple<owned_t<A>...> args_;
  std::vector<std::tuple<K...>> slice_args_{};
};

}  // namespace detail::failover

/// Made by engine::protect_split: a protected call whose answer is stored in slices. Copies share
/// the same point.
/// Thread-safety: every function may be called from any thread. Callable and splitter are called
/// from several threads at once.
/// Exceptions: as for `point`. If there is nothing to serve, the exception of the upstream.
template <class Signature, class T, class... K>
class split_point;
template <class R, class... A, class T, class... K>
class split_point<R(A...), T, K...> {
 public:
  using answer_type = answer<R>;

  /// `complete()` of the answer is `yes` if all slices were recovered.
  answer_type operator()(A... args) const {
    namespace core = detail::failover;
    const auto call = core::run_unsized_gather(
        state_->values->core, time_limit_,
        [&] { return std::make_shared<core::split_call<R(A...), T, K...>>(state_, args...); },
        args...);
    return {std::move(call->whole), std::move(call->provenance)};
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
  [[nodiscard]] split_point within(std::chrono::microseconds limit) const {
    auto limited = *this;
    limited.time_limit_ = std::max(limit, std::chrono::microseconds::zero());
    return limited;
  }

 private:
  friend class engine;
  using state = detail::failover::split_state<R(A...), T, K...>;
  explicit split_point(std::shared_ptr<const state> point_state) : state_(std::move(point_state)) {}
  std::shared_ptr<const state> state_;
  std::chrono::microseconds time_limit_{};
};

}  // namespace HOLDFAST_NAMESPACE
