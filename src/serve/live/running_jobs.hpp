#pragma once

#include <holdfast/version.hpp>

#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve {

class job_runner;

/// The jobs that run, the newest first: JSON of an array, for the member `jobs` of the state.
/// Without `reason` and `result`, which may have messages of a database: every viewer sees the
/// state. Null: there are no jobs.
[[nodiscard]] std::string running_jobs(const job_runner* runner);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
