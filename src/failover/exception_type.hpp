#pragma once

#include <holdfast/version.hpp>

#include <exception>
#include <string>

namespace HOLDFAST_NAMESPACE {

/// The name of an exception's type, as a person writes it; empty when there is none.
[[nodiscard]] std::string exception_type(const std::exception_ptr& thrown);

}  // namespace HOLDFAST_NAMESPACE
