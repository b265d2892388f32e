#include "serve/live/running_jobs.hpp"

#include "serve/api/job_runner.hpp"
#include "serve/api/json_writer.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

std::string running_jobs(const job_runner* runner) {
  if (runner == nullptr) return "[]";
  json_writer out;
  out.begin_array();
  for (auto& status : runner->list()) {
    if (status.state != job_state::running) continue;
    status.reason.clear();
    status.result.clear();
    out.raw(to_json(status));
  }
  out.end_array();
  return out.take();
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
