#pragma once

/// \file
/// The engine, which protects calls with a store.

#include <holdfast/codec.hpp>
#include <holdfast/failover/core.hpp>
#include <holdfast/failover/drill.hpp>
#include <holdfast/failover/each.hpp>
#include <holdfast/failover/hooks.hpp>
#include <holdfast/failover/list.hpp>
#include <holdfast/failover/options.hpp>
#include <holdfast/failover/outlook.hpp>
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

/// Protects calls: stores their answers, and serves the stored answer if a call fails.
///
/// Threads: none, until a point has a deadline or a soft expiry, or the store may block. Then two
/// bounded pools (engine_options::threads) and the writer of the write-behind queue.
/// Thread-safety: every function may be called from any thread, except construction, move and
/// destruction.
/// After fork the child must not use the engine; it needs a new one.
class HOLDFAST_API engine {
 public:
  /// Throws errc::invalid_argument with all problems of the options.
  explicit engine(std::shared_ptr<holdfast::store> store, engine_options options = {});
  /// Makes an engine from a TOML file, with database, store, cleanup and reports;
  /// docs/configuration.md lists the keys. Keys in the file override `base`. Throws
  /// errc::invalid_argument with all problems of the file and their lines, errc::unavailable if the
  /// file cannot be read, and what opening the store throws. Messages never contain secrets.
  [[nodiscard]] static engine from_config(const std::string& file, engine_options base = {});
  engine(engine&&) noexcept;
  engine& operator=(engine&&) noexcept;
  /// Closes the engine and waits up to engine_options::linger. Logs what was still running or
  /// unsaved. A hung upstream does not block it.
  ~engine();

  /// Protects a callable: a function, lambda or functor with one signature, callable as const from
  /// several threads. The arguments must be keyable, the result must have a codec. If the first
  /// parameter is `const call_context&`, the engine supplies it. Throws holdfast::error with all
  /// problems of the point: name, domain, expiry, generator, policies.
  template <class Codec = void, class F>
  [[nodiscard]] auto protect(std::string_view name, const point_options& options, F callable,
                             point_hooks<detail::failover::result_of_point<F>> hooks = {}) {
    return bind<Codec>(name, options, std::move(callable), std::move(hooks),
                       &detail::failover::make_point);
  }
  template <class Codec = void, class F>
    requires(!std::is_convertible_v<F, const point_options&>)
  [[nodiscard]] auto protect(std::string_view name, F callable) {
    return protect<Codec>(name, point_options{}, std::move(callable));
  }

  /// Makes a protected call without a point object. The first call with a name registers the point;
  /// later calls find it by name. The callable has no parameters; `args` make the key.
  template <class... A, class F>
  auto call(std::string_view name, const point_options& options, const std::tuple<A...>& args,
            F callable) {
    using R = std::invoke_result_t<const F&>;
    auto point = bind<void>(
        name, options, [callable = std::move(callable)](const A&...) -> R { return callable(); },
        {}, &detail::failover::find_or_make_point);
    return std::apply([&](const A&... arg) { return point(arg...); }, args);
  }

  /// Protects a call for many ids. The first parameter of the callable is `std::span<const Id>` or
  /// `const std::vector<Id>&`. It returns one `std::optional<T>` or `holdfast::fetched<T>` per id,
  /// in their order, or a map, or a vector of pairs. Each item is stored and recovered on its own,
  /// under the key of a single call of the domain. Hooks apply to items. Throws as protect.
  template <class Codec = void, class F>
  [[nodiscard]] auto protect_each(
      std::string_view name, const point_options& options, F callable,
      point_hooks<typename detail::failover::each_types<F>::value> hooks = {}) {
    return bind_each<Codec>(signature_of<F>(), name, options, std::move(callable),
                            std::move(hooks));
  }

  /// Protects a call that returns a list, `std::vector<T>`. `id` returns the id of an item: the
  /// argument of a single call of the domain, or a tuple of its arguments. Hooks apply to items.
  /// Throws as protect.
  template <class Codec = void, class F, class Id>
  [[nodiscard]] auto protect_list(
      std::string_view name, const point_options& options, F callable, Id id,
      point_hooks<typename detail::failover::result_of_point<F>::value_type> hooks = {}) {
    return bind_list<Codec>(signature_of<F>(), name, options, std::move(callable), std::move(id),
                            std::move(hooks));
  }

  /// Protects a call whose answer a splitter divides into slices of type T. Hooks apply to slices.
  /// Throws as protect, and if a function of the splitter is missing.
  template <class Codec = void, class R, class... A, class T, class... K, class F>
  [[nodiscard]] split_point<R(A...), T, K...> protect_split(
      std::string_view name, const point_options& options, splitter<R(A...), T, K...> splitter,
      F callable, std::type_identity_t<point_hooks<T>> hooks = {}) {
    static_assert(std::is_same_v<typename detail::failover::signature<F>::type, R(A...)>,
                  "holdfast: the splitter is for another signature than that of the callable");
    if (!splitter.on_store || !splitter.merge)
      throw error(errc::invalid_argument, "a splitter needs on_store and merge",
                  {.path = "splitter"});
    auto state = std::make_shared<detail::failover::split_state<R(A...), T, K...>>();
    auto type = describe_scattered<T, F, A...>(hooks);
    type.listed = !splitter.on_recover;
    state->splitter = std::move(splitter);
    state->upstream = with_copied_arguments<F, A...>(std::move(callable));
    state->values = make_values<Codec, T>(std::move(hooks));
    state->values->core = detail::failover::make_point(core_, name, options, std::move(type));
    return split_point<R(A...), T, K...>(std::move(state));
  }

  /// All points, sorted by name.
  [[nodiscard]] std::vector<point_status> points() const;
  /// Asks the store, within the read deadline. Never throws.
  [[nodiscard]] engine_health health() const noexcept;
  /// Updates the gauges of the metrics sink and logs one line per point. `reports.every` and
  /// `reports.cron` call it regularly.
  void report() const;

  // For operators; see "See why" in docs/failover.md. All of them throw errc::not_found if no point
  // has this name.

  [[nodiscard]] point_status status(std::string_view point) const;
  /// The options of a point that are in force: those of the code, changed by the configuration
  /// file, with the defaults of the engine filled in.
  [[nodiscard]] point_options resolved(std::string_view point) const;
  /// What expires when, if the upstream stays down. Needs engine_insight::coverage for the part
  /// that concerns calls. Asks the store for at most two seconds; throws errc::timeout or
  /// errc::unavailable if it does not answer, and what it throws.
  [[nodiscard]] point_outlook outlook(std::string_view point) const;
  /// Whether kept answers could have served the calls of the last hour. Needs
  /// engine_insight::coverage. Does not ask the store.
  [[nodiscard]] point_coverage coverage(std::string_view point) const;
  /// Starts a drill: for a part of the calls, the upstream counts as down. They are answered from
  /// the store with cause_code::drill, or, where nothing is kept, by the upstream after all. A
  /// drill never makes a call fail. It ends by itself. Throws errc::invalid_argument for options
  /// out of range and for points whose answers are stored in slices, errc::duplicate if a drill of
  /// this point runs. Split-phase calls take part with pending::rehearse.
  drill_report drill(std::string_view point, const drill_options& options = {});
  /// Ends the drill of a point, if one runs. Throws errc::not_found if there never was one.
  drill_report end_drill(std::string_view point);
  /// The running or last drill of each point that had one, by name.
  [[nodiscard]] std::vector<drill_report> drills() const;

  /// Waits until all stored answers are durable, or until the deadline. Returns whether they are.
  /// The deadline refers to engine_options::clock, by default std::chrono::steady_clock. If that
  /// clock stands still, the same time on std::chrono::steady_clock is the limit.
  bool flush(std::chrono::steady_clock::time_point deadline);
  /// Refuses new calls (errc::unavailable), waits for running calls and queued writes until the
  /// deadline, and reports what is still running or unsaved. The deadline is as for flush.
  close_report close(std::chrono::steady_clock::time_point deadline);

  /// Stores for every entry of a domain (point_options::domain, or the name of a point without one)
  /// that there is no answer, in the realm of the caller. Returns their number. Throws what the
  /// store throws; then some of them are left.
  std::uint64_t invalidate_domain(std::string_view domain);

  /// The entry of one row key of a point, in the realm of the caller: stores that there is no
  /// answer, until the entry expires. Returns false if nothing is kept. Throws errc::not_found if
  /// no point has this name, and what the store throws.
  bool invalidate_entry(std::string_view point, std::string_view key);

  /// The store that the engine uses, including its write-behind queue.
  [[nodiscard]] std::shared_ptr<holdfast::store> store() const;

 private:
  /// Closes the engine within engine_options::linger and logs what was left undone.
  void close_and_log() noexcept;

  template <class F>
  [[nodiscard]] static constexpr typename detail::failover::signature<F>::type* signature_of() {
    return nullptr;
  }

  template <class Codec, class F, class Make>
  auto bind(std::string_view name, const point_options& options, F callable,
            point_hooks<detail::failover::result_of_point<F>> hooks, Make make) {
    return bind_as<Codec>(signature_of<F>(), name, options, std::move(callable), std::move(hooks),
                          make);
  }
  template <class Codec, class R, class... A, class F, class Make>
  point<R(A...)> bind_as(R (*)(A...), std::string_view name, const point_options& options,
                         F callable,
                         point_hooks<typename detail::failover::payload_of<R>::type> hooks,
                         Make make) {
    using T = typename detail::failover::payload_of<R>::type;
    static_assert(std::is_move_constructible_v<T>, "holdfast: an answer must be movable");
    auto codec = make_codec<Codec, T>();
    static_assert(codec_for<decltype(codec), T>,
                  "holdfast: this codec is not one for the result of the callable");
    auto type = describe<T, F, A...>(hooks);
    type.may_be_empty =
        detail::failover::payload_of<R>::optional || static_cast<bool>(hooks.result);
    type.has_recovered = static_cast<bool>(hooks.recovered);
    auto state = std::make_shared<detail::failover::bound_point<F, decltype(codec), R, A...>>(
        std::move(callable), std::move(codec), std::move(hooks));
    state->core = make(core_, name, options, std::move(type));
    return point<R(A...)>(std::move(state));
  }

  template <class Codec, class T>
  [[nodiscard]] static auto make_codec() {
    if constexpr (std::is_void_v<Codec>) return default_codec<T>();
    else return Codec{};
  }
  template <class T, class F, class... A>
  [[nodiscard]] detail::failover::point_type describe(const point_hooks<T>& hooks) const {
    detail::failover::point_type type{.type = typeid(T),
                                      .printed_name = detail::failover::printed_type<T>()};
    const auto& registry = detail::failover::payloads_of(*core_);
    try {
      type.registered_name = registry.template name_of<T>();
      type.allowed = registry.template allowlist_of<T>();
    } catch (const error&) {  // NOLINT(bugprone-empty-catch)
      // Not registered: the options of the point, or the type, determine the name.
    }
    type.has_arguments = sizeof...(A) > 0;
    type.ownable = detail::failover::ownable<A...>;
    type.has_unserved = static_cast<bool>(hooks.unserved);
    type.takes_context = detail::failover::signature<F>::takes_context;
    return type;
  }

  // Scattered calls.
  template <class T, class F, class... A>
  [[nodiscard]] detail::failover::point_type describe_scattered(const point_hooks<T>& hooks) const {
    auto type = describe<T, F, A...>(hooks);
    type.scattered = true;
    type.may_be_empty = true;
    return type;
  }
  template <class Codec, class T>
  [[nodiscard]] static auto make_values(point_hooks<T> hooks) {
    auto codec = make_codec<Codec, T>();
    static_assert(codec_for<decltype(codec), T>,
                  "holdfast: this codec is not one for the items of the answer");
    return std::make_shared<detail::failover::coded_values<T, decltype(codec)>>(std::move(codec),
                                                                                std::move(hooks));
  }
  template <class F, class... A>
  [[nodiscard]] static auto with_copied_arguments(F callable) {
    return
        [callable = std::move(callable)](const call_context& context,
                                         const std::tuple<detail::failover::owned_t<A>...>& args) {
          return detail::failover::invoke_with_copies<A...>(callable, context, args);
        };
  }
  template <class Codec, class R, class Ids, class... A, class F>
  auto bind_each(R (*)(Ids, A...), std::string_view name, const point_options& options, F callable,
                 point_hooks<typename detail::failover::each_types<F>::value> hooks) {
    using id = typename detail::failover::each_signature<R(Ids, A...)>::id;
    using results = detail::failover::results_of<id, std::remove_cvref_t<R>>;
    using T = typename results::type;
    auto state = std::make_shared<detail::failover::each_state<id, T, A...>>();
    auto type = describe_scattered<T, F, A...>(hooks);
    type.has_arguments = true;
    state->upstream = [callable = std::move(callable)](
                          const call_context& context, const std::vector<id>& ids,
                          const std::tuple<detail::failover::owned_t<A>...>& more) {
      return results::in_order(
          ids, detail::failover::invoke_with_copies<A...>(callable, context, more, ids));
    };
    state->values = make_values<Codec, T>(std::move(hooks));
    state->values->core = detail::failover::make_point(core_, name, options, std::move(type));
    return each_point<id, T, A...>(std::move(state));
  }
  template <class Codec, class R, class... A, class F, class Id>
  auto bind_list(R (*)(A...), std::string_view name, const point_options& options, F callable,
                 Id id,
                 point_hooks<typename detail::failover::result_of_point<F>::value_type> hooks) {
    using T = typename detail::failover::result_of_point<F>::value_type;
    static_assert(std::is_same_v<std::remove_cvref_t<R>, std::vector<T>>,
                  "holdfast: protect_list needs a callable that gives std::vector");
    using key = std::remove_cvref_t<std::invoke_result_t<const Id&, const T&>>;
    auto state = std::make_shared<detail::failover::list_state<key, T, A...>>();
    auto type = describe_scattered<T, F, A...>(hooks);
    type.listed = true;
    state->upstream = with_copied_arguments<F, A...>(std::move(callable));
    state->id_of = std::move(id);
    state->values = make_values<Codec, T>(std::move(hooks));
    state->values->core = detail::failover::make_point(core_, name, options, std::move(type));
    return list_point<key, T, A...>(std::move(state));
  }

  std::shared_ptr<detail::failover::engine_core> core_;
};

}  // namespace HOLDFAST_NAMESPACE
