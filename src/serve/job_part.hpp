#pragma once

#include <holdfast/version.hpp>

#include "serve/server_part.hpp"

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Runs jobs, for all parts, and has the endpoints below /v1/jobs.
[[nodiscard]] std::unique_ptr<server_part> make_job_part();

}  // namespace HOLDFAST_NAMESPACE::detail::serve
