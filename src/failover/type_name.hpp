#pragma once

/// \file
/// Names of types, for the payload class and for logs.

#include <holdfast/version.hpp>

#include <exception>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// The payload class of a type that is not registered, from its name as the compiler prints it.
/// Examples: `app::country` is `app.country`, a vector of it `app.country[]`, std::string is
/// `text`. Anonymous namespaces and enclosing functions are omitted. Empty for types that compilers
/// print differently (other templates, lambdas).
[[nodiscard]] std::string default_class_name(std::string_view printed);

/// The demangled type name of an exception, without the inline namespace; empty for null.
[[nodiscard]] std::string exception_type(const std::exception_ptr& thrown);

}  // namespace HOLDFAST_NAMESPACE::detail::failover
