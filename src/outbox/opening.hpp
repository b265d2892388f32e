#pragma once

/// \file
/// Opening a backend at its first operation.

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "base/first_use.hpp"

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Opens a backend unless it is open. A failure that is in doubt concerns the tables or keys of the
/// backend, not the operation of the caller, which was not sent: the error is then not in doubt.
template <class Action>
void open_at_first_use(first_use& first_use, Action&& action) {
  if (first_use.done()) return;
  try {
    first_use.run(action);
  } catch (const error& problem) {
    if (!problem.in_doubt()) throw;
    throw error(problem.code(), problem.message(),
                {.path = problem.path(),
                 .backend_code = problem.backend_code(),
                 .transient = problem.transient()});
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
