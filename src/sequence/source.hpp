#pragma once

/// \file
/// What the copies of a sequence_source and its sequences share: a block store and its refiller.

#include <holdfast/clock.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/sequence.hpp>
#include <holdfast/version.hpp>

#include "base/first_use.hpp"
#include "base/fork_detector.hpp"
#include "sequence/process_check.hpp"
#include "sequence/refiller.hpp"

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// Checks the settings of a store once. Shared with the refiller, whose thread may outlive the
/// source.
///
/// Thread-safety: every function may be called from any thread.
class settings_check {
 public:
  settings_check(std::shared_ptr<block_store> store, std::shared_ptr<const logger> log,
                 bool allow_unsafe)
      : store_(std::move(store)), log_(std::move(log)), allow_unsafe_(allow_unsafe) {}

  /// Does nothing after it has succeeded. Throws errc::unsupported_type if the store could forget
  /// blocks, and errors of the store.
  void run() {
    first_use_.run([this] { check(); });
  }

 private:
  void check() const;

  const std::shared_ptr<block_store> store_;
  const std::shared_ptr<const logger> log_;
  const bool allow_unsafe_;
  first_use first_use_{};
};

/// Made with `make_source`.
/// Thread-safety: every function may be called from any thread.
class source {
 public:
  source(std::shared_ptr<block_store> blocks, const sequence_environment& environment,
         sequence_store_options store_options);

  [[nodiscard]] bool inherited_by_fork() const noexcept {
    return fork_detector_.inherited_by_fork();
  }
  void check_process() const { sequence::check_process(fork_detector_); }

  const sequence_store_options options;
  const std::shared_ptr<block_store> store;
  const std::shared_ptr<const holdfast::clock> clock;
  const std::shared_ptr<const logger> log;
  const std::shared_ptr<metrics_sink> metrics;
  const std::shared_ptr<settings_check> settings;
  refiller refills;

 private:
  const fork_detector fork_detector_{};
};

/// `store_options`: for the source of a database, the options that its sequences share.
[[nodiscard]] HOLDFAST_API std::shared_ptr<source> make_source(
    std::shared_ptr<block_store> blocks, const sequence_environment& environment,
    sequence_store_options store_options = {});

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
