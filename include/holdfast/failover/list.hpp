#pragma once

/// \file
/// Calls that return a list, such as "all countries" or "the accounts of a region". The items are
/// stored one by one; a manifest names the items of each list.

#include <holdfast/failover/gather.hpp>
#include <holdfast/failover/gathered.hpp>
#include <holdfast/result.hpp>
#include <holdfast/version.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

namespace detail::failover {

template <class>
inline constexpr bool is_tuple = false;
template <class... K>
inline constexpr bool is_tuple<std::tuple<K...>> = true;

/// The key of a single call with this id; the elements of a tuple are its arguments.
template <class Id>
[[nodiscard]] std::string key_of_id(const point_core& point, const gather_base& call,
                                    const Id& id) {
  if constexpr (is_tuple<Id>)
    return std::apply([&](const auto&... args) { return slice_key(point, call, args...); }, id);
  else return slice_key(point, call, id);
}

template <class Id, class T, class... A>
struct list_state {
  std::shared_ptr<typed_values<T>> values;
  std::function<std::vector<T>(const call_context&, const std::tuple<owned_t<A>...>&)> upstream;
  std::function<Id(const T&)> id_of;
};

template <class Id, class T, class... A>
class list_call final : public gather_call<T> {
 public:
  using state = list_state<Id, T, A...>;
  list_call(std::shared_ptr<const state> point_state, const std::remove_reference_t<A>&... args)
      : gather_call<T>(point_state->values),
        state_(std::move(point_state)),
        args_(owned_copy<A>(args)...) {
    this->listed = true;
  }

  void invoke(const call_context& context) override { results_ = state_->upstream(context, args_); }
  void split_live() override {
    this->clear();
    for (T& item : results_) {
      this->add(key_of(item)).state = slice_state::live;
      this->value(this->slices.size() - 1).emplace(std::move(item));
    }
    results_.clear();
  }
  void split_for_recovery() override {}
  [[nodiscard]] Id id(const T& value) const { return state_->id_of(value); }

 private:
  std::string key_of(const T& value) const {
    try {
      return key_of_id(this->point(), *this, state_->id_of(value));
    } catch (...) {
      record_missing_slice_key(this->point());
      return {};
    }
  }

  const std::shared_ptr<const state> state_;
  const std::tuple<owned_t<A>...> args_;
  std::vector<T> results_{};
};

}  // namespace detail::failover

/// Made by engine::protect_list: a protected call that returns a list. Copies share the same point.
///
/// A live list is stored item by item, each under the key of a single call with its id. After the
/// items comes a manifest, which names the items of the list for these arguments, in their order.
/// If the upstream fails, the list is recovered with the help of the manifest: it is complete
/// (`yes`) if every item was found, `no` if some have expired or are lost. Items that the upstream
/// no longer lists are not served. Thread-safety: every function may be called from any thread. The
/// callable is called from several threads at once. Exceptions: as for `point`. If there is nothing
/// to serve, the exception of the upstream.
template <class Id, class T, class... A>
class list_point {
 public:
  using answer_type = gathered<Id, T>;

  answer_type operator()(A... args) const {
    namespace core = detail::failover;
    const auto& point = state_->values->core;
    const auto call = core::run_unsized_gather(
        point, time_limit_,
        [&] { return std::make_shared<core::list_call<Id, T, A...>>(state_, args...); }, args...);
    return core::gathered_from<Id, T>(
        *point, *call,
        [&](std::size_t, const std::optional<T>& value) { return call->id(*value); });
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
  [[nodiscard]] list_point within(std::chrono::microseconds limit) const {
    auto limited = *this;
    limited.time_limit_ = std::max(limit, std::chrono::microseconds::zero());
    return limited;
  }

 private:
  friend class engine;
  using state = detail::failover::list_state<Id, T, A...>;
  explicit list_point(std::shared_ptr<const state> point_state) : state_(std::move(point_state)) {}
  std::shared_ptr<const state> state_;
  std::chrono::microseconds time_limit_{};
};

}  // namespace HOLDFAST_NAMESPACE
