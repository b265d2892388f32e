#pragma once

/// \file
/// The signature of a callable, and how a call owns its arguments.

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

namespace HOLDFAST_NAMESPACE::detail {

template <class R, class... A>
struct plain_signature {
  using type = R(A...);
  static constexpr bool takes_context = false;
};
template <class R, class First, class... A>
  requires std::same_as<std::remove_cvref_t<First>, call_context>
struct plain_signature<R, First, A...> {
  using type = R(A...);
  static constexpr bool takes_context = true;
};

/// Nothing inside: not a callable with one signature.
template <class F>
struct signature {};
template <class R, class... A>
struct signature<R (*)(A...)> : plain_signature<R, A...> {};
template <class R, class... A>
struct signature<R (*)(A...) noexcept> : plain_signature<R, A...> {};
template <class C, class R, class... A>
struct signature<R (C::*)(A...) const> : plain_signature<R, A...> {};
template <class C, class R, class... A>
struct signature<R (C::*)(A...) const noexcept> : plain_signature<R, A...> {};
template <class C, class R, class... A>
struct signature<R (C::*)(A...) const&> : plain_signature<R, A...> {};
template <class C, class R, class... A>
struct signature<R (C::*)(A...) const & noexcept> : plain_signature<R, A...> {};
template <class F>
  requires requires { &F::operator(); }
struct signature<F> : signature<decltype(&F::operator())> {};

template <class F>
concept has_signature = requires { typename signature<F>::type; };

/// A functor whose one operator() is there but not const.
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

/// What an answer holds: `U` of `std::optional<U>`, else the result itself, as a value.
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

/// What a point with this callable answers; says so when it cannot be one.
template <class F>
struct point_result {
  static_assert(!is_mutable_callable<F>,
                "holdfast: a point is called from several threads, so its callable must be callable as const; remove 'mutable'");
  static_assert(has_signature<F> || is_mutable_callable<F>,
                "holdfast: this callable has no single signature (a generic lambda, or overloads); write the types of its parameters");
};
template <class F>
  requires has_signature<F>
struct point_result<F> {
  template <class Signature>
  struct result;
  template <class R, class... A>
  struct result<R(A...)> {
    static_assert(!std::is_void_v<R>, "holdfast: the callable returns nothing, so there is nothing to keep; return a value");
    using type = R;
  };
  using type = typename payload_of<typename result<typename signature<F>::type>::type>::type;
};
template <class F>
using result_of_point = typename point_result<F>::type;

/// What a call keeps of an argument when it may outlive its caller: views become what they look at.
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
  } else if constexpr (requires { owned_t<A>(argument.begin(), argument.end()); } && !std::same_as<owned_t<A>, std::decay_t<A>>) {
    return owned_t<A>(argument.begin(), argument.end());
  } else {
    return owned_t<A>(argument);
  }
}

/// An owned argument as the callable takes it.
template <class A>
decltype(auto) given_back(owned_t<A>& kept) {
  if constexpr (std::same_as<std::decay_t<A>, const char*>) {
    return static_cast<const char*>(kept.c_str());
  } else if constexpr (!std::same_as<owned_t<A>, std::decay_t<A>>) {
    return std::decay_t<A>(kept);
  } else if constexpr (std::is_lvalue_reference_v<A>) {
    return static_cast<A>(kept);
  } else {
    return static_cast<owned_t<A>&&>(kept);
  }
}

template <class... A>
inline constexpr bool ownable = (std::copy_constructible<owned_t<A>> && ...);

/// The name of a type as this compiler prints it.
template <class T>
consteval std::string_view printed_type() {
  std::string_view text = __PRETTY_FUNCTION__;
  const auto begin = text.find("T = ");
  text.remove_prefix(begin == std::string_view::npos ? text.size() : begin + 4);
  // gcc goes on with `; std::string_view = ...`
  auto end = text.find("; std::string_view = ");
  if (end == std::string_view::npos) end = text.rfind(']');
  return text.substr(0, end);
}

}  // namespace HOLDFAST_NAMESPACE::detail
