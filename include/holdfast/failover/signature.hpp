#pragma once

/// \file
/// Signatures of callables, and copies of arguments that a call owns. Not for user code.

#include <holdfast/failover/call_context.hpp>
#include <holdfast/version.hpp>

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::failover {

template <class R, class... A>
struct split_signature {
  using type = R(A...);
  static constexpr bool takes_context = false;
};
template <class R, class First, class... A>
  requires std::same_as<std::remove_cvref_t<First>, call_context>
struct split_signature<R, First, A...> {
  using type = R(A...);
  static constexpr bool takes_context = true;
};

/// Empty if F is not a callable with exactly one signature.
template <class F>
struct signature {};
template <class R, class... A>
struct signature<R (*)(A...)> : split_signature<R, A...> {};
template <class R, class... A>
struct signature<R (*)(A...) noexcept> : split_signature<R, A...> {};
template <class C, class R, class... A>
struct signature<R (C::*)(A...) const> : split_signature<R, A...> {};
template <class C, class R, class... A>
struct signature<R (C::*)(A...) const noexcept> : split_signature<R, A...> {};
template <class C, class R, class... A>
struct signature<R (C::*)(A...) const&> : split_signature<R, A...> {};
template <class C, class R, class... A>
struct signature<R (C::*)(A...) const & noexcept> : split_signature<R, A...> {};
template <class F>
  requires requires { &F::operator(); }
struct signature<F> : signature<decltype(&F::operator())> {};

template <class F>
concept has_signature = requires { typename signature<F>::type; };

/// True for a functor whose only operator() is not const.
template <class>
inline constexpr bool is_mutable_member = false;
template <class C, class R, class... A>
inline constexpr bool is_mutable_member<R (C::*)(A...)> = true;
template <class C, class R, class... A>
inline constexpr bool is_mutable_member<R (C::*)(A...) noexcept> = true;
template <class F>
inline constexpr bool is_mutable_callable = false;
template <class F>
  requires requires { &F::operator(); }
inline constexpr bool is_mutable_callable<F> = is_mutable_member<decltype(&F::operator())>;

/// The value type of an answer: `U` for `std::optional<U>`, else the decayed result.
template <class R>
struct payload_of {
  using type = std::remove_cvref_t<R>;
  static constexpr bool optional = false;
};
template <class U>
struct payload_of<std::optional<U>> {
  using type = U;
  static constexpr bool optional = true;
};
template <class R>
  requires(!std::same_as<R, std::remove_cvref_t<R>>)
struct payload_of<R> : payload_of<std::remove_cvref_t<R>> {};

/// The value type of a point with this callable. Explains why a callable is not suitable.
template <class F>
struct point_result {
  static_assert(!is_mutable_callable<F>,
                "holdfast: a point is called from several threads, so its callable must be "
                "callable as const; remove 'mutable'");
  static_assert(has_signature<F> || is_mutable_callable<F>,
                "holdfast: this callable has no single signature (a generic lambda, or overloads); "
                "write the types of its parameters");
};
template <class F>
  requires has_signature<F>
struct point_result<F> {
  template <class Signature>
  struct result;
  template <class R, class... A>
  struct result<R(A...)> {
    static_assert(
        !std::is_void_v<R>,
        "holdfast: the callable returns nothing, so there is nothing to keep; return a value");
    using type = R;
  };
  using type = typename payload_of<typename result<typename signature<F>::type>::type>::type;
};
template <class F>
using result_of_point = typename point_result<F>::type;

/// The type in which a call owns an argument, because it may outlive its caller: views become
/// containers.
template <class A>
struct owned_argument {
  using type = A;
};
template <>
struct owned_argument<std::string_view> {
  using type = std::string;
};
template <>
struct owned_argument<const char*> {
  using type = std::string;
};
template <class E, std::size_t N>
struct owned_argument<std::span<E, N>> {
  using type = std::vector<std::remove_cv_t<E>>;
};
template <class A>
using owned_t = typename owned_argument<std::decay_t<A>>::type;

template <class A>
owned_t<A> owned_copy(const std::remove_reference_t<A>& argument) {
  if constexpr (std::same_as<std::decay_t<A>, const char*>) {
    return argument == nullptr ? std::string() : std::string(argument);
  } else if constexpr (requires { owned_t<A>(argument.begin(), argument.end()); } &&
                       !std::same_as<owned_t<A>, std::decay_t<A>>) {
    return owned_t<A>(argument.begin(), argument.end());
  } else {
    return owned_t<A>(argument);
  }
}

/// Converts an owned argument to the parameter type of the callable.
template <class A>
decltype(auto) as_parameter(owned_t<A>& owned) {
  if constexpr (std::same_as<std::decay_t<A>, const char*>) {
    return static_cast<const char*>(owned.c_str());
  } else if constexpr (!std::same_as<owned_t<A>, std::decay_t<A>>) {
    return std::decay_t<A>(owned);
  } else if constexpr (std::is_lvalue_reference_v<A>) {
    return static_cast<A>(owned);
  } else {
    return static_cast<owned_t<A>&&>(owned);
  }
}

template <class... A>
inline constexpr bool ownable = (std::copy_constructible<owned_t<A>> && ...);

/// Calls with copies of owned arguments, after `leading` arguments. The callable may change its
/// arguments; a retry needs them unchanged.
template <class... A, class F, class... Leading>
auto invoke_with_copies(const F& callable, const call_context& context,
                        std::tuple<owned_t<A>...> args, const Leading&... leading) {
  return std::apply(
      [&](auto&... arg) {
        if constexpr (signature<F>::takes_context)
          return callable(context, leading..., as_parameter<A>(arg)...);
        else return callable(leading..., as_parameter<A>(arg)...);
      },
      args);
}

/// The name of a type as this compiler prints it.
template <class T>
consteval std::string_view printed_type() {
  std::string_view text = __PRETTY_FUNCTION__;
  const auto begin = text.find("T = ");
  text.remove_prefix(begin == std::string_view::npos ? text.size() : begin + 4);
  // gcc appends `; std::string_view = ...`
  auto end = text.find("; std::string_view = ");
  if (end == std::string_view::npos) end = text.rfind(']');
  return text.substr(0, end);
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
