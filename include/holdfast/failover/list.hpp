#pragma once

/// \file
/// Calls without ids that give a list: "all countries", "the accounts of a region". The items are stored one by one; a manifest says which
/// of them belong to the answer of which question.

#include <holdfast/failover/gather.hpp>
#include <holdfast/failover/gathered.hpp>
#include <holdfast/result.hpp>
#include <holdfast/version.hpp>

#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

namespace detail {

template <class>
inline constexpr bool is_tuple = false;
template <class... K>
inline constexpr bool is_tuple<std::tuple<K...>> = true;

/// The key of an id: that of a call with it alone; of a tuple, that of a call with its elements.
template <class Id>
[[nodiscard]] std::string key_of_id(const point_core& point, const gather_base& call, const Id& id) {
  if constexpr (is_tuple<Id>) return std::apply([&](const auto&... each) { return slice_key(point, call, each...); }, id);
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
  list_call(std::shared_ptr<const state> its, const std::remove_reference_t<A>&... args)
      : gather_call<T>(its->values), state_(std::move(its)), args_(owned_copy<A>(args)...) {
    this->listed = true;
  }

  void invoke(const call_context& context) override { results_ = state_->upstream(context, args_); }
  void split_live() override {
    this->clear();
    for (T& each : results_) {
      auto& one = this->add(key_of(each));
      one.at = slice_state::live;
      this->value(this->slices.size() - 1).emplace(std::move(each));
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
      unkeyed_slice(this->point());
      return {};
    }
  }

  const std::shared_ptr<const state> state_;
  const std::tuple<owned_t<A>...> args_;
  std::vector<T> results_{};
};

}  // namespace detail

/// Made by engine::protect_list: a protected call that gives a list. A handle; copies share the same point.
///
/// A live list is stored item by item, under the key of a single call with the item's id, and after the items a manifest: which of them, in
/// which order, are the answer to these arguments. When the upstream fails, the manifest says what the list consists of: the answer is
/// complete (`yes`) when every item is there, `no` when some have expired or are lost. Other arguments have another manifest; what the
/// upstream no longer lists does not come back.
/// Thread-safety: every function may be called from any thread; the callable is called from several at once.
/// Exception safety: as that of a point; with nothing to serve the upstream's own exception leaves.
template <class Id, class T, class... A>
class list_point {
 public:
  using answer_type = gathered<Id, T>;

  answer_type operator()(A... args) const {
    const auto& core = state_->values->core;
    const auto call = detail::run_gather(
        core, [&] { return std::make_shared<detail::list_call<Id, T, A...>>(state_, args...); },
        [&](detail::gather_base& started) {
          detail::start_gather(*core, started, 0,
                               [&] { return detail::keys_of(*core).of_raw(detail::keys_of(*core).raw(args...) + started.scope_text); });
        });
    return detail::gathered_from<Id, T>(*core, *call, [&](std::size_t, const std::optional<T>& value) { return call->id(*value); });
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
  explicit list_point(std::shared_ptr<const detail::list_state<Id, T, A...>> state) : state_(std::move(state)) {}
  std::shared_ptr<const detail::list_state<Id, T, A...>> state_;
};

}  // namespace HOLDFAST_NAMESPACE
