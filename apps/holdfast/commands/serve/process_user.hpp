#pragma once

#include <string>

namespace holdfast::cli {

[[nodiscard]] bool is_root() noexcept;

/// Continues as this user, with its groups, on all threads. Throws errc::invalid_argument if there
/// is no such user, errc::permission if the process may not change.
void become_user(const std::string& name);

}  // namespace holdfast::cli
