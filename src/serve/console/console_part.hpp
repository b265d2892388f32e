#pragma once

#include <holdfast/version.hpp>

#include "serve/server_part.hpp"

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// The console: `GET /` and `GET /console/{file}`. The files are public, because they have no data;
/// the page gets its data from /v1, like every other client.
[[nodiscard]] std::unique_ptr<server_part> make_console_part();

}  // namespace HOLDFAST_NAMESPACE::detail::serve
