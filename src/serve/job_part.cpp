#include "serve/job_part.hpp"

#include "serve/api/job_endpoints.hpp"
#include "serve/api/job_runner.hpp"
#include "serve/api/services.hpp"

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

class job_part final : public server_part {
 public:
  /// Every part is attached by now: the runner knows the audit log and the event stream.
  void add_endpoints(endpoint_table& table, services& shared) override {
    runner_ = std::make_unique<job_runner>(job_runner_options{
        .clock = shared.clock, .log = shared.log, .audit = shared.audit, .events = shared.events});
    shared.jobs = runner_.get();
    add_job_endpoints(table, shared);
  }
  void drain() noexcept override {
    if (runner_) runner_->stop_all();
  }
  std::vector<std::string> finish(std::chrono::steady_clock::time_point deadline) override {
    if (!runner_) return {};
    const auto count = runner_->wait_for_end(deadline);
    if (count == 0) return {};
    return {std::to_string(count) + " steps of jobs"};
  }

 private:
  std::unique_ptr<job_runner> runner_{};
};

}  // namespace

std::unique_ptr<server_part> make_job_part() { return std::make_unique<job_part>(); }

}  // namespace HOLDFAST_NAMESPACE::detail::serve
