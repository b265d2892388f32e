#pragma once

/// \file
/// Calls for many ids at once. Each item is stored and recovered as if it had been asked for alone, so list calls and single calls of a
/// domain feed each other.

#include <holdfast/failover/gather.hpp>
#include <holdfast/failover/gathered.hpp>
#include <holdfast/result.hpp>
#include <holdfast/version.hpp>

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

/// One result of an upstream that can fail for some of many: a value, "there is nothing", or why it is not known. What is not known is
/// recovered from the store on its own.
template <class T>
class fetched {
 public:
  fetched(T value) : value_(std::move(value)) {}                 // NOLINT(google-explicit-constructor)
  fetched(std::nullopt_t) {}                                     // NOLINT(google-explicit-constructor)
  fetched(std::optional<T> value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  fetched(std::exception_ptr why) : error_(std::move(why)) {}    // NOLINT(google-explicit-constructor)

  [[nodiscard]] std::optional<T>& value() noexcept { return value_; }
  [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }

 private:
  std::optional<T> value_{};
  std::exception_ptr error_{};
};

namespace detail {

[[noreturn]] HOLDFAST_API void wrong_number_of_items(std::size_t asked, std::size_t got);

/// The results that a callable for many ids may have, and how they become one `fetched` per id.
template <class Id, class R>
struct results_of {};
template <class Id, class T>
struct results_of<Id, std::vector<fetched<T>>> {
  using type = T;
  static std::vector<fetched<T>> in_order(std::span<const Id> ids, std::vector<fetched<T>> given) {
    if (given.size() != ids.size()) wrong_number_of_items(ids.size(), given.size());
    return given;
  }
};
template <class Id, class T>
struct results_of<Id, std::vector<std::optional<T>>> {
  using type = T;
  static std::vector<fetched<T>> in_order(std::span<const Id> ids, std::vector<std::optional<T>> given) {
    if (given.size() != ids.size()) wrong_number_of_items(ids.size(), given.size());
    return {std::make_move_iterator(given.begin()), std::make_move_iterator(given.end())};
  }
};
/// Pairs of id and value, a map's or a vector's: what is not among them is absent.
template <class Id, class R>
  requires requires(const R& all) {
    { all.begin()->first } -> std::convertible_to<const Id&>;
    all.begin()->second;
    all.size();
  }
struct results_of<Id, R> {
  using type = std::remove_cvref_t<decltype(std::declval<R&>().begin()->second)>;
  static std::vector<fetched<type>> in_order(std::span<const Id> ids, const R& given) {
    std::vector<fetched<type>> results;
    results.reserve(ids.size());
    // Keyed by text or not, an id may have no hash and no order; so a map is asked, and pairs are looked through, from where the last was.
    auto next = given.begin();
    for (const Id& id : ids) {
      auto found = given.end();
      if constexpr (requires { given.find(id); }) {
        found = given.find(id);
      } else {
        for (std::size_t looked = 0; looked < given.size(); ++looked, ++next) {
          if (next == given.end()) next = given.begin();
          if (next->first == id) {
            found = next;
            break;
          }
        }
      }
      if (found == given.end()) results.emplace_back(std::nullopt);
      else results.emplace_back(found->second);
    }
    return results;
  }
};

/// The signature of a callable for many ids: the ids come first.
template <class Signature>
struct each_signature {
  static constexpr bool good = false;
};
template <class R, class Ids, class... A>
  requires requires { typename std::remove_cvref_t<Ids>::value_type; }
struct each_signature<R(Ids, A...)> {
  using id = std::remove_cv_t<typename std::remove_cvref_t<Ids>::value_type>;
  using ids = std::remove_cvref_t<Ids>;
  static constexpr bool good = (std::same_as<ids, std::vector<id>> || std::same_as<ids, std::span<const id>>) &&
                               requires { typename results_of<id, std::remove_cvref_t<R>>::type; };
};

template <class F>
struct each_types {
  static_assert(has_signature<F>, "holdfast: this callable has no single signature; write the types of its parameters");
};
template <class F>
  requires has_signature<F>
struct each_types<F> {
  template <class Signature>
  struct of {
    static_assert(each_signature<Signature>::good,
                  "holdfast: protect_each needs a callable that takes std::span<const Id> or const std::vector<Id>& first and returns "
                  "std::vector<std::optional<T>>, std::vector<holdfast::fetched<T>>, a map or a vector of pairs");
  };
  template <class R, class Ids, class... A>
    requires(each_signature<R(Ids, A...)>::good)
  struct of<R(Ids, A...)> {
    using id = typename each_signature<R(Ids, A...)>::id;
    using value = typename results_of<id, std::remove_cvref_t<R>>::type;
    static_assert(!std::same_as<id, std::string_view> && !std::is_pointer_v<id>,
                  "holdfast: a call owns its ids; take std::string instead of a view or a pointer");
  };
  using signature = typename detail::signature<F>::type;
  using value = typename of<signature>::value;
};

template <class Id, class T, class... A>
struct each_state {
  std::shared_ptr<typed_values<T>> values;
  std::function<std::vector<fetched<T>>(const call_context&, const std::vector<Id>&, const std::tuple<owned_t<A>...>&)> upstream;
};

template <class Id, class T, class... A>
class each_call final : public gather_call<T> {
 public:
  using state = each_state<Id, T, A...>;
  each_call(std::shared_ptr<const state> its, std::span<const Id> ids, const std::remove_reference_t<A>&... more)
      : gather_call<T>(its->values), state_(std::move(its)), ids_(ids.begin(), ids.end()), more_(owned_copy<A>(more)...) {}

  void invoke(const call_context& context) override { results_ = state_->upstream(context, ids_, more_); }
  void split_live() override {
    split_for_recovery();
    for (std::size_t i = 0; i < results_.size(); ++i) {
      auto& one = this->slices[i];
      one.error = results_[i].error();
      one.at = one.error ? slice_state::open : slice_state::live;
      this->value(i) = std::move(results_[i].value());
    }
    results_.clear();
  }
  void split_for_recovery() override {
    this->clear();
    for (const Id& id : ids_) {
      std::apply([&](const auto&... more) { this->add(slice_key(this->point(), *this, id, more...)); }, more_);
    }
  }
  [[nodiscard]] const Id& id(std::size_t i) const { return ids_[i]; }

 private:
  const std::shared_ptr<const state> state_;
  const std::vector<Id> ids_;
  const std::tuple<owned_t<A>...> more_;
  std::vector<fetched<T>> results_{};
};

}  // namespace detail

/// Made by engine::protect_each: a protected call for many ids. A handle; copies share the same point.
///
/// A live answer is stored item by item, under the key of a single call with that id (and the other arguments), absent items as tombstones,
/// with one write. When the upstream fails, each item is recovered by itself, all within scatter_options::timeout; one that is corrupt,
/// slow or not there costs only itself. An id may be there twice.
/// Thread-safety: every function may be called from any thread; the callable is called from several at once.
/// Exception safety: as that of a point; with nothing to serve the upstream's own exception leaves.
template <class Id, class T, class... A>
class each_point {
 public:
  using answer_type = gathered<Id, T>;

  answer_type operator()(std::span<const Id> ids, A... more) const {
    const auto& core = state_->values->core;
    const auto call = detail::run_gather(
        core, [&] { return std::make_shared<detail::each_call<Id, T, A...>>(state_, ids, more...); },
        [&](detail::gather_base& started) { detail::start_gather(*core, started, ids.size(), {}); });
    return detail::gathered_from<Id, T>(*core, *call, [&](std::size_t i, const auto&) { return call->id(i); });
  }
  answer_type operator()(std::initializer_list<Id> ids, A... more) const {
    return (*this)(std::span<const Id>(ids.begin(), ids.size()), static_cast<A&&>(more)...);
  }
  /// The same without exceptions.
  result<answer_type> try_call(std::span<const Id> ids, A... more) const noexcept {
    try {
      return (*this)(ids, static_cast<A&&>(more)...);
    } catch (...) {
      return std::current_exception();
    }
  }

 private:
  friend class engine;
  explicit each_point(std::shared_ptr<const detail::each_state<Id, T, A...>> state) : state_(std::move(state)) {}
  std::shared_ptr<const detail::each_state<Id, T, A...>> state_;
};

}  // namespace HOLDFAST_NAMESPACE
