#pragma once

/// \file
/// The engine: it protects calls with a store.

#include <holdfast/codec.hpp>
#include <holdfast/failover/core.hpp>
#include <holdfast/failover/hooks.hpp>
#include <holdfast/failover/options.hpp>
#include <holdfast/failover/point.hpp>
#include <holdfast/failover/signature.hpp>
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

  /// Every point, in the order of their names.
  [[nodiscard]] std::vector<point_status> points() const;
  /// Asks the store, within the read deadline. Never throws.
  [[nodiscard]] engine_health health() const noexcept;
  /// Brings the gauges of the metrics sink up to date and says one line per point to the log; `report_every` does it by itself.
  void report() const;

  /// Waits until what was stored is durable, but not beyond the deadline. Says whether it is.
  bool flush(std::chrono::steady_clock::time_point deadline);
  /// Stops intake, waits for calls and writes until the deadline, and says what is still running or unsaved. Calls that come later are
  /// refused (errc::unavailable).
  close_report close(std::chrono::steady_clock::time_point deadline);

  /// The store that answers are kept in, with what the engine put in front of it.
  [[nodiscard]] std::shared_ptr<holdfast::store> store() const;

 private:
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
    detail::point_type type{.type = typeid(T), .printed_name = detail::printed_type<T>()};
    const auto& known = detail::payloads_of(*core_);
    try {
      type.registered_name = known.template name_of<T>();
      type.allowed = known.template allowlist_of<T>();
    } catch (const error&) {  // NOLINT(bugprone-empty-catch)
      // Not registered: the point's own options, or the type, give the name.
    }
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

  std::shared_ptr<detail::engine_core> core_;
};

}  // namespace HOLDFAST_NAMESPACE
