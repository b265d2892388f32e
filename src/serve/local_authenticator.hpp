#pragma once

/// \file
/// Identity without tokens: with `--open` every caller on this machine is an admin, otherwise no
/// caller is identified, and only public endpoints answer.

#include <holdfast/version.hpp>

#include "serve/server_part.hpp"

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve {

[[nodiscard]] std::unique_ptr<server_part> make_local_identity(bool open);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
