#pragma once

#include <holdfast/version.hpp>

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// The payload class of a type that nobody registered: `app::country` is `app.country`. Anonymous namespaces and enclosing functions are left
/// out, texts and bytes have names of their own, a vector is named after its elements: `app.country[]`.
/// Empty for a type that compilers print differently (other templates, lambdas).
[[nodiscard]] std::string default_class_name(std::string_view printed);

}  // namespace HOLDFAST_NAMESPACE
