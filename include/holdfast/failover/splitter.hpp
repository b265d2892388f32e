#pragma once

/// \file
/// Calls whose answers consist of parts in some shape of their own: a page with a header, a tree, a map of maps. A splitter says how such an
/// answer is taken apart and put together again.

#include <holdfast/failover/answer.hpp>
#include <holdfast/failover/gather.hpp>
#include <holdfast/failover/list.hpp>
#include <holdfast/result.hpp>
#include <holdfast/version.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// A part of an answer, to be stored: the arguments of the single call that would give it, and what it would give.
template <class T, class... K>
struct stored_slice {
  std::tuple<K...> args;
  std::optional<T> value;  ///< nothing: a tombstone
};

/// A part of an answer, as it was recovered.
template <class T, class... K>
struct recovered_slice {
  std::optional<std::tuple<K...>> args{};  ///< as on_recover gave them; nothing when a manifest named the slice
  std::optional<T> value{};                ///< nothing: it is missing, or known not to exist
  provenance from{};
  bool missing = false;
};

/// How an answer R to the arguments A is made of slices T, each under the key of a call with the arguments K.
///
/// The two ways of splitting must agree: a slice stored under arguments that on_recover never names would never be found. The first live
/// answers of a point are checked for that; a difference is counted (point_numbers::asymmetric) and logged.
/// Called on the thread of the call, from several at once. What they throw is counted and logged: on_store's means that the answer is given
/// and not stored, that of the others that nothing can be served.
template <class Signature, class T, class... K>
struct splitter;
template <class R, class... A, class T, class... K>
struct splitter<R(A...), T, K...> {
  /// The slices of a live answer.
  std::function<std::vector<stored_slice<T, K...>>(const R& whole, const detail::owned_t<A>&... args)> on_store{};
  /// The slices of which an answer to these arguments consists. Without this function a manifest remembers them, as for protect_list.
  std::function<std::vector<std::tuple<K...>>(const detail::owned_t<A>&... args)> on_recover{};
  /// Puts together what was recovered, in the order of on_recover (or of the manifest). Nothing: it cannot be served.
  std::function<std::optional<R>(std::vector<recovered_slice<T, K...>> slices, const detail::owned_t<A>&... args)> merge{};
};

namespace detail {

template <class Signature, class T, class... K>
struct split_state;
template <class R, class... A, class T, class... K>
struct split_state<R(A...), T, K...> {
  std::shared_ptr<typed_values<T>> values;
  std::function<R(const call_context&, const std::tuple<owned_t<A>...>&)> upstream;
  splitter<R(A...), T, K...> how;
};

template <class Signature, class T, class... K>
class split_call;
template <class R, class... A, class T, class... K>
class split_call<R(A...), T, K...> final : public gather_call<T> {
 public:
  using state = split_state<R(A...), T, K...>;
  split_call(std::shared_ptr<const state> its, const std::remove_reference_t<A>&... args)
      : gather_call<T>(its->values), state_(std::move(its)), args_(owned_copy<A>(args)...) {
    this->listed = !state_->how.on_recover;
    this->whole_apart = true;
  }

  void invoke(const call_context& context) override { whole.emplace(state_->upstream(context, args_)); }
  void split_live() override {
    this->clear();
    auto parts = std::apply([&](const auto&... args) { return state_->how.on_store(*whole, args...); }, args_);
    for (auto& each : parts) {
      auto& one = this->add(key_of_id(this->point(), *this, each.args));
      one.at = slice_state::live;
      this->value(this->slices.size() - 1) = std::move(each.value);
    }
  }
  void split_for_recovery() override {
    this->clear();
    wanted_ = wanted();
    for (const auto& each : wanted_) this->add(key_of_id(this->point(), *this, each));
  }
  [[nodiscard]] std::vector<std::string> keys_for_recovery() override {
    std::vector<std::string> keys;
    for (const auto& each : wanted()) keys.push_back(key_of_id(this->point(), *this, each));
    return keys;
  }
  [[nodiscard]] bool merge() override {
    std::vector<recovered_slice<T, K...>> parts;
    for (std::size_t i = 0; i < this->slices.size(); ++i) {
      const auto& one = this->slices[i];
      const bool missing = one.at == slice_state::missing || one.at == slice_state::open;
      if (missing && drops_missing(this->point())) continue;
      auto& part = parts.emplace_back();
      if (!this->listed) part.args = wanted_[i];
      part.value = this->value(i);
      part.from = one.call->from;
      part.missing = missing;
    }
    if (parts.empty() && !this->listed) return false;
    whole = std::apply([&](const auto&... args) { return state_->how.merge(std::move(parts), args...); }, args_);
    return whole.has_value();
  }
  void make_empty() noexcept override {
    gather_call<T>::make_empty();
    whole.reset();
  }
  void default_value() override {
    gather_call<T>::default_value();
    (void)merge();
  }
  bool unserved() override {
    if (!gather_call<T>::unserved()) return false;
    (void)merge();
    return true;
  }
  void take(call_base& finished) noexcept override {
    gather_call<T>::take(finished);
    whole = std::move(static_cast<split_call&>(finished).whole);
  }

  std::optional<R> whole{};

 private:
  [[nodiscard]] std::vector<std::tuple<K...>> wanted() const {
    return std::apply([&](const auto&... args) { return state_->how.on_recover(args...); }, args_);
  }

  const std::shared_ptr<const state> state_;
  const std::tuple<owned_t<A>...> args_;
  std::vector<std::tuple<K...>> wanted_{};
};

}  // namespace detail

/// Made by engine::protect_split: a protected call whose answer is stored in slices. A handle; copies share the same point.
/// Thread-safety: every function may be called from any thread; callable and splitter are called from several at once.
/// Exception safety: as that of a point; with nothing to serve the upstream's own exception leaves.
template <class Signature, class T, class... K>
class split_point;
template <class R, class... A, class T, class... K>
class split_point<R(A...), T, K...> {
 public:
  using answer_type = answer<R>;

  /// Its `complete()` says whether a recovered answer was made of all its slices.
  answer_type operator()(A... args) const {
    const auto& core = state_->values->core;
    const auto call = detail::run_gather(
        core, [&] { return std::make_shared<detail::split_call<R(A...), T, K...>>(state_, args...); },
        [&](detail::gather_base& started) {
          detail::start_gather(*core, started, 0,
                               [&] { return detail::keys_of(*core).of_raw(detail::keys_of(*core).raw(args...) + started.scope_text); });
        });
    return {std::move(call->whole), std::move(call->from)};
  }
  /// The same without exceptions.
  result<answer_type> try_call(A... args) const noexcept {
    try {
      return (*this)(static_cast<A&&>(args)...);
    } catch (...) {
      return std::current_exception();
    }
  }

 private:
  friend class engine;
  explicit split_point(std::shared_ptr<const detail::split_state<R(A...), T, K...>> state) : state_(std::move(state)) {}
  std::shared_ptr<const detail::split_state<R(A...), T, K...>> state_;
};

}  // namespace HOLDFAST_NAMESPACE
