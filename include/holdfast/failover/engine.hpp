#pragma once

/// \file
/// The engine: it protects calls with a store.

#include <holdfast/codec.hpp>
#include <holdfast/failover/core.hpp>
#include <holdfast/failover/each.hpp>
#include <holdfast/failover/hooks.hpp>
#include <holdfast/failover/list.hpp>
#include <holdfast/failover/options.hpp>
#include <holdfast/failover/point.hpp>
#include <holdfast/failover/signature.hpp>
#include <holdfast/failover/splitter.hpp>
#include <holdfast/failover/status.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// Protects calls: keeps their last good answers in a store, and serves them when a call fails.
///
/// Threads: none of its own until a point has a deadline or a soft expiry, or the store may wait; then bounded pools (engine_options) and
/// the one writer of its write-behind.
/// Thread-safety: every function may be called from any thread, but construction, moving and destruction.
/// After fork the child must not use it: make a new one.
class HOLDFAST_API engine {
 public:
  /// Throws errc::invalid_argument with everything that is wrong with the options.
  explicit engine(std::shared_ptr<holdfast::store> on, engine_options options = {});
  /// An engine as a TOML file describes it, with its database, store, cleanup and reports; docs/configuration.md has every key. The file has
  /// the last word on what it names; all else is as `base` says. Throws errc::invalid_argument with everything that is wrong with the file,
  /// each with its line; errc::unavailable when it cannot be read; and what opening the store throws. Never prints a secret.
  [[nodiscard]] static engine from_config(const std::string& file, engine_options base = {});
  engine(engine&&) noexcept;
  engine& operator=(engine&&) noexcept;
  /// Closes, within engine_options::linger; what was left is told to the log. A hung upstream does not hang it.
  ~engine();

  /// Protects a callable: a function, a lambda or a functor with one signature that may be called as const from several threads. Its
  /// arguments must be keyable; its result must have a codec. A `const call_context&` as its first parameter is given to it by the engine.
  /// Throws holdfast::error with everything that is wrong with the point: name, domain, expiry, generator, policies.
  template <class Codec = void, class F>
  [[nodiscard]] auto protect(std::string_view name, const point_options& options, F callable,
                             point_hooks<detail::result_of_point<F>> hooks = {}) {
    return bind<Codec>(name, options, std::move(callable), std::move(hooks), &detail::make_point);
  }
  template <class Codec = void, class F>
    requires(!std::is_convertible_v<F, const point_options&>)
  [[nodiscard]] auto protect(std::string_view name, F callable) {
    return protect<Codec>(name, point_options{}, std::move(callable));
  }

  /// A protected call without a point of one's own: the point is registered by the first such call, and found again by its name. The
  /// callable takes no arguments; those that make the key are given beside it.
  template <class... A, class F>
  auto call(std::string_view name, const point_options& options, const std::tuple<A...>& args, F callable) {
    using R = std::invoke_result_t<const F&>;
    auto once = bind<void>(
        name, options, [callable = std::move(callable)](const A&...) -> R { return callable(); }, {}, &detail::find_or_make_point);
    return std::apply([&](const A&... each) { return once(each...); }, args);
  }

  /// Protects a call for many ids: the callable takes them first, as `std::span<const Id>` or `const std::vector<Id>&`, and gives one
  /// `std::optional<T>` for each, in their order (or pairs, a map, or `holdfast::fetched<T>`). Each item is stored and recovered by itself,
  /// under the key of a single call of the domain. Hooks see items. Throws as protect.
  template <class Codec = void, class F>
  [[nodiscard]] auto protect_each(std::string_view name, const point_options& options, F callable,
                                  point_hooks<typename detail::each_types<F>::value> hooks = {}) {
    return bind_each<Codec>(static_cast<typename detail::signature<F>::type*>(nullptr), name, options, std::move(callable),
                            std::move(hooks));
  }

  /// Protects a call that gives a list, `std::vector<T>`, and takes no ids. `id` gives the id of an item, by which a single call of the domain
  /// would ask for it; a tuple where that has several arguments. Hooks see items. Throws as protect.
  template <class Codec = void, class F, class Id>
  [[nodiscard]] auto protect_list(std::string_view name, const point_options& options, F callable, Id id,
                                  point_hooks<typename detail::result_of_point<F>::value_type> hooks = {}) {
    return bind_list<Codec>(static_cast<typename detail::signature<F>::type*>(nullptr), name, options, std::move(callable), std::move(id),
                            std::move(hooks));
  }

  /// Protects a call whose answer is stored in slices of type T, in any shape that the splitter knows. Hooks see slices. Throws as protect,
  /// and when a function of the splitter is missing.
  template <class Codec = void, class R, class... A, class T, class... K, class F>
  [[nodiscard]] split_point<R(A...), T, K...> protect_split(std::string_view name, const point_options& options,
                                                            splitter<R(A...), T, K...> how, F callable,
                                                            std::type_identity_t<point_hooks<T>> hooks = {}) {
    static_assert(std::is_same_v<typename detail::signature<F>::type, R(A...)>,
                  "holdfast: the splitter is for another signature than that of the callable");
    if (!how.on_store || !how.merge) throw error(errc::invalid_argument, "a splitter needs on_store and merge", {.path = "splitter"});
    auto state = std::make_shared<detail::split_state<R(A...), T, K...>>();
    detail::point_type type = describe<T>(hooks);
    type.has_arguments = sizeof...(A) > 0;
    type.ownable = detail::ownable<A...>;
    type.listed = !how.on_recover;
    type.takes_context = detail::signature<F>::takes_context;
    state->how = std::move(how);
    state->upstream = with_owned<F, R, A...>(std::move(callable));
    state->values = code<Codec, T>(std::move(hooks));
    state->values->core = detail::make_point(core_, name, options, std::move(type));
    return split_point<R(A...), T, K...>(std::move(state));
  }

  /// Every point, in the order of their names.
  [[nodiscard]] std::vector<point_status> points() const;
  /// Asks the store, within the read deadline. Never throws.
  [[nodiscard]] engine_health health() const noexcept;
  /// Brings the gauges of the metrics sink up to date and says one line per point to the log; `report_every` does it by itself.
  void report() const;

  /// Waits until what was stored is durable, but not beyond the deadline. Says whether it is. The deadline is a moment of the engine's clock
  /// (engine_options::clock), which is std::chrono::steady_clock unless given; one that stands still is believed only until the same time has
  /// passed on the machine's.
  bool flush(std::chrono::steady_clock::time_point deadline);
  /// Stops intake, waits for calls and writes until the deadline, and says what is still running or unsaved. Calls that come later are
  /// refused (errc::unavailable). The deadline is one as for flush.
  close_report close(std::chrono::steady_clock::time_point deadline);

  /// The store that answers are kept in, with what the engine put in front of it.
  [[nodiscard]] std::shared_ptr<holdfast::store> store() const;

 private:
  /// Closes, and tells the log what was left.
  void end() noexcept;

  template <class Codec, class F, class Make>
  auto bind(std::string_view name, const point_options& options, F callable, point_hooks<detail::result_of_point<F>> hooks, Make make) {
    return bind_as<Codec>(static_cast<typename detail::signature<F>::type*>(nullptr), name, options, std::move(callable), std::move(hooks),
                          make);
  }
  template <class Codec, class R, class... A, class F, class Make>
  point<R(A...)> bind_as(R (*)(A...), std::string_view name, const point_options& options, F callable,
                         point_hooks<typename detail::payload_of<R>::type> hooks, Make make) {
    using T = typename detail::payload_of<R>::type;
    static_assert(std::is_move_constructible_v<T>, "holdfast: an answer must be movable");
    auto how = [] {
      if constexpr (std::is_void_v<Codec>) return default_codec<T>();
      else return Codec{};
    }();
    static_assert(codec_for<decltype(how), T>, "holdfast: this codec is not one for the result of the callable");
    detail::point_type type = named_type<T>();
    type.has_arguments = sizeof...(A) > 0;
    type.ownable = detail::ownable<A...>;
    type.may_be_empty = detail::payload_of<R>::optional || static_cast<bool>(hooks.result);
    type.has_default = static_cast<bool>(hooks.default_value);
    type.has_unserved = static_cast<bool>(hooks.unserved);
    type.has_recovered = static_cast<bool>(hooks.recovered);
    type.takes_context = detail::signature<F>::takes_context;
    auto state = std::make_shared<detail::bound_point<F, decltype(how), R, A...>>(std::move(callable), std::move(how), std::move(hooks));
    state->core = make(core_, name, options, std::move(type));
    return point<R(A...)>(std::move(state));
  }

  template <class T>
  [[nodiscard]] detail::point_type named_type() const {
    detail::point_type type{.type = typeid(T), .printed_name = detail::printed_type<T>()};
    const auto& known = detail::payloads_of(*core_);
    try {
      type.registered_name = known.template name_of<T>();
      type.allowed = known.template allowlist_of<T>();
    } catch (const error&) {  // NOLINT(bugprone-empty-catch)
      // Not registered: the point's own options, or the type, give the name.
    }
    return type;
  }

  // Scattered calls.
  template <class T>
  [[nodiscard]] detail::point_type describe(const point_hooks<T>& hooks) const {
    detail::point_type type = named_type<T>();
    type.scattered = true;
    type.may_be_empty = true;
    type.has_default = static_cast<bool>(hooks.default_value);
    type.has_unserved = static_cast<bool>(hooks.unserved);
    return type;
  }
  template <class Codec, class T>
  [[nodiscard]] static std::shared_ptr<detail::typed_values<T>> code(point_hooks<T> hooks) {
    if constexpr (std::is_void_v<Codec>) {
      using chosen = decltype(default_codec<T>());
      return std::make_shared<detail::coded_values<T, chosen>>(default_codec<T>(), std::move(hooks));
    } else {
      static_assert(codec_for<Codec, T>, "holdfast: this codec is not one for the items of the answer");
      return std::make_shared<detail::coded_values<T, Codec>>(Codec{}, std::move(hooks));
    }
  }
  /// The callable on a copy of the arguments that a call owns: it may do with them as it likes.
  template <class F, class R, class... A>
  [[nodiscard]] static auto with_owned(F callable) {
    return [callable = std::move(callable)](const call_context& context, const std::tuple<detail::owned_t<A>...>& args) -> R {
      auto copy = args;
      return std::apply(
          [&](auto&... each) -> R {
            if constexpr (detail::signature<F>::takes_context) return callable(context, detail::given_back<A>(each)...);
            else return callable(detail::given_back<A>(each)...);
          },
          copy);
    };
  }
  template <class Codec, class R, class Ids, class... A, class F>
  auto bind_each(R (*)(Ids, A...), std::string_view name, const point_options& options, F callable,
                 point_hooks<typename detail::each_types<F>::value> hooks) {
    using id = typename detail::each_signature<R(Ids, A...)>::id;
    using results = detail::results_of<id, std::remove_cvref_t<R>>;
    using T = typename results::type;
    auto state = std::make_shared<detail::each_state<id, T, A...>>();
    detail::point_type type = describe<T>(hooks);
    type.ownable = detail::ownable<A...>;
    type.takes_context = detail::signature<F>::takes_context;
    state->upstream = [callable = std::move(callable)](const call_context& context, const std::vector<id>& ids,
                                                       const std::tuple<detail::owned_t<A>...>& more) {
      auto copy = more;
      return std::apply(
          [&](auto&... each) {
            if constexpr (detail::signature<F>::takes_context)
              return results::in_order(ids, callable(context, ids, detail::given_back<A>(each)...));
            else return results::in_order(ids, callable(ids, detail::given_back<A>(each)...));
          },
          copy);
    };
    state->values = code<Codec, T>(std::move(hooks));
    state->values->core = detail::make_point(core_, name, options, std::move(type));
    return each_point<id, T, A...>(std::move(state));
  }
  template <class Codec, class R, class... A, class F, class Id>
  auto bind_list(R (*)(A...), std::string_view name, const point_options& options, F callable, Id id,
                 point_hooks<typename detail::result_of_point<F>::value_type> hooks) {
    using T = typename detail::result_of_point<F>::value_type;
    static_assert(std::is_same_v<std::remove_cvref_t<R>, std::vector<T>>, "holdfast: protect_list needs a callable that gives std::vector");
    using key = std::remove_cvref_t<std::invoke_result_t<const Id&, const T&>>;
    auto state = std::make_shared<detail::list_state<key, T, A...>>();
    detail::point_type type = describe<T>(hooks);
    type.has_arguments = sizeof...(A) > 0;
    type.ownable = detail::ownable<A...>;
    type.listed = true;
    type.takes_context = detail::signature<F>::takes_context;
    state->upstream = with_owned<F, std::vector<T>, A...>(std::move(callable));
    state->id_of = std::move(id);
    state->values = code<Codec, T>(std::move(hooks));
    state->values->core = detail::make_point(core_, name, options, std::move(type));
    return list_point<key, T, A...>(std::move(state));
  }

  std::shared_ptr<detail::engine_core> core_;
};

}  // namespace HOLDFAST_NAMESPACE
