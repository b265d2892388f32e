#pragma once

/// \file
/// Calls for many ids. Each item is stored and recovered under the key of a single call, so both
/// kinds of calls of a domain share their entries.

#include <holdfast/failover/gather.hpp>
#include <holdfast/failover/gathered.hpp>
#include <holdfast/result.hpp>
#include <holdfast/version.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// One result of an upstream that can fail for individual ids: a value, nothing (the item does not
/// exist), or an exception. An item with an exception is recovered from the store.
template <class T>
class fetched {
 public:
  fetched(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  fetched(std::nullopt_t) {}                      // NOLINT(google-explicit-constructor)
  fetched(std::optional<T> value)
      : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  fetched(std::exception_ptr error)
      : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] std::optional<T>& value() noexcept { return value_; }
  [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }

 private:
  std::optional<T> value_{};
  std::exception_ptr error_{};
};

namespace detail::failover {

[[noreturn]] HOLDFAST_API void wrong_number_of_items(std::size_t requested, std::size_t received);

/// The result types of a callable for many ids. `in_order` converts a result to one `fetched` per
/// id.
template <class Id, class R>
struct results_of {};
template <class Id, class Result>
std::vector<Result> checked_size(std::span<const Id> ids, std::vector<Result> results) {
  if (results.size() != ids.size()) wrong_number_of_items(ids.size(), results.size());
  return results;
}
template <class Id, class T>
struct results_of<Id, std::vector<fetched<T>>> {
  using type = T;
  static std::vector<fetched<T>> in_order(std::span<const Id> ids,
                                          std::vector<fetched<T>> results) {
    return checked_size(ids, std::move(results));
  }
};
template <class Id, class T>
struct results_of<Id, std::vector<std::optional<T>>> {
  using type = T;
  static std::vector<fetched<T>> in_order(std::span<const Id> ids,
                                          std::vector<std::optional<T>> results) {
    results = checked_size(ids, std::move(results));
    return {std::make_move_iterator(results.begin()), std::make_move_iterator(results.end())};
  }
};
/// A map, or a vector of pairs of id and value. An id that is not in it is absent.
template <class Id, class R>
  requires requires(const R& all) {
    { all.begin()->first } -> std::convertible_to<const Id&>;
    all.begin()->second;
    all.size();
  }
struct results_of<Id, R> {
  using type = std::remove_cvref_t<decltype(std::declval<R&>().begin()->second)>;
  static std::vector<fetched<type>> in_order(std::span<const Id> ids, const R& results) {
    std::vector<fetched<type>> ordered;
    ordered.reserve(ids.size());
    auto next = results.begin();
    for (const Id& id : ids) {
      const auto match = find(results, id, next);
      if (match == results.end()) ordered.emplace_back(std::nullopt);
      else ordered.emplace_back(match->second);
    }
    return ordered;
  }

 private:
  /// Searches pairs from `next` on, around the end, because ids and pairs mostly have the same
  /// order. An id may have neither a hash nor an order, so there is no index.
  static auto find(const R& results, const Id& id, decltype(results.begin())& next) {
    if constexpr (requires { results.find(id); }) {
      return results.find(id);
    } else {
      for (std::size_t compared = 0; compared < results.size(); ++compared, ++next) {
        if (next == results.end()) next = results.begin();
        if (next->first == id) return next;
      }
      return results.end();
    }
  }
};

/// The signature of a callable for many ids. The ids are its first parameter.
template <class Signature>
struct each_signature {
  static constexpr bool valid = false;
};
template <class R, class Ids, class... A>
  requires requires { typename std::remove_cvref_t<Ids>::value_type; }
struct each_signature<R(Ids, A...)> {
  using id = std::remove_cv_t<typename std::remove_cvref_t<Ids>::value_type>;
  using ids = std::remove_cvref_t<Ids>;
  static constexpr bool valid =
      (std::same_as<ids, std::vector<id>> || std::same_as<ids, std::span<const id>>) &&
      requires { typename results_of<id, std::remove_cvref_t<R>>::type; };
};

template <class F>
struct each_types {
  static_assert(
      has_signature<F>,
      "holdfast: this callable has no single signature; write the types of its parameters");
};
template <class F>
  requires has_signature<F>
struct each_types<F> {
  template <class Signature>
  struct of {
    static_assert(each_signature<Signature>::valid,
                  "holdfast: protect_each needs a callable that takes std::span<const Id> or const "
                  "std::vector<Id>& first and returns "
                  "std::vector<std::optional<T>>, std::vector<holdfast::fetched<T>>, a map or a "
                  "vector of pairs");
  };
  template <class R, class Ids, class... A>
    requires(each_signature<R(Ids, A...)>::valid)
  struct of<R(Ids, A...)> {
    using id = typename each_signature<R(Ids, A...)>::id;
    using value = typename results_of<id, std::remove_cvref_t<R>>::type;
    static_assert(!std::same_as<id, std::string_view> && !std::is_pointer_v<id>,
                  "holdfast: a call owns its ids; take std::string instead of a view or a pointer");
  };
  using value = typename of<typename signature<F>::type>::value;
};

template <class Id, class T, class... A>
struct each_state {
  std::shared_ptr<typed_values<T>> values;
  std::function<std::vector<fetched<T>>(const call_context&, const std::vector<Id>&,
                                        const std::tuple<owned_t<A>...>&)>
      upstream;
};

template <class Id, class T, class... A>
class each_call final : public gather_call<T> {
 public:
  using state = each_state<Id, T, A...>;
  each_call(std::shared_ptr<const state> point_state, std::span<const Id> ids,
            const std::remove_reference_t<A>&... more)
      : gather_call<T>(point_state->values),
        state_(std::move(point_state)),
        ids_(ids.begin(), ids.end()),
        more_(owned_copy<A>(more)...) {}

  void invoke(const call_context& context) override {
    results_ = state_->upstream(context, ids_, more_);
  }
  void split_live() override {
    split_for_recovery();
    for (std::size_t i = 0; i < results_.size(); ++i) {
      auto& part = this->slices[i];
      part.error = results_[i].error();
      part.state = part.error ? slice_state::open : slice_state::live;
      this->value(i) = std::move(results_[i].value());
    }
    results_.clear();
  }
  void split_for_recovery() override {
    this->clear();
    for (const Id& id : ids_) {
      std::apply(
          [&](const auto&... more) { this->add(slice_key(this->point(), *this, id, more...)); },
          more_);
    }
  }
  [[nodiscard]] const Id& id(std::size_t i) const { return ids_[i]; }

 private:
  const std::shared_ptr<const state> state_;
  const std::vector<Id> ids_;
  const std::tuple<owned_t<A>...> more_;
  std::vector<fetched<T>> results_{};
};

}  // namespace detail::failover

/// Made by engine::protect_each: a protected call for many ids. Copies share the same point.
///
/// A live answer is stored with one write: each item under the key of a single call with its id
/// (and the other arguments), absent items as tombstones. If the upstream fails, each item is
/// recovered on its own, all within scatter_options::timeout; a corrupt entry affects only its
/// item. The ids may contain duplicates. Thread-safety: every function may be called from any
/// thread. The callable is called from several threads at once. Exceptions: as for `point`. If
/// there is nothing to serve, the exception of the upstream.
template <class Id, class T, class... A>
class each_point {
 public:
  using answer_type = gathered<Id, T>;

  answer_type operator()(std::span<const Id> ids, A... more) const {
    namespace core = detail::failover;
    const auto& point = state_->values->core;
    const auto call = core::run_gather(
        point, time_limit_,
        [&] { return std::make_shared<core::each_call<Id, T, A...>>(state_, ids, more...); },
        [&](core::gather_base& started) { core::start_gather(*point, started, ids.size(), {}); });
    return core::gathered_from<Id, T>(*point, *call,
                                      [&](std::size_t i, const auto&) { return call->id(i); });
  }
  answer_type operator()(std::initializer_list<Id> ids, A... more) const {
    return (*this)(std::span<const Id>(ids.begin(), ids.size()), static_cast<A&&>(more)...);
  }
  /// As operator(), but returns an exception instead of throwing it.
  result<answer_type> try_call(std::span<const Id> ids, A... more) const noexcept {
    try {
      return (*this)(ids, static_cast<A&&>(more)...);
    } catch (...) {
      return std::current_exception();
    }
  }

  /// A copy whose calls take at most `limit`, recovery included, or the deadline of the point if
  /// that is shorter: `point.within(200ms)(args)`. Zero or less: as the point.
  [[nodiscard]] each_point within(std::chrono::microseconds limit) const {
    auto limited = *this;
    limited.time_limit_ = std::max(limit, std::chrono::microseconds::zero());
    return limited;
  }

 private:
  friend class engine;
  using state = detail::failover::each_state<Id, T, A...>;
  explicit each_point(std::shared_ptr<const state> point_state) : state_(std::move(point_state)) {}
  std::shared_ptr<const state> state_;
  std::chrono::microseconds time_limit_{};
};

}  // namespace HOLDFAST_NAMESPACE
