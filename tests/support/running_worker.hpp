#pragma once

#include <holdfast/worker.hpp>

#include <stop_token>
#include <thread>

namespace holdfast::test {

/// A worker that runs until the end of a scope, or until it is told to stop.
class running_worker {
 public:
  explicit running_worker(worker& which)
      : thread_([this, &which](const std::stop_token& stop) { report_ = which.run(stop); }) {}
  worker_report stop() {
    thread_.request_stop();
    thread_.join();
    return report_;
  }

 private:
  worker_report report_{};
  std::jthread thread_;
};

}  // namespace holdfast::test
