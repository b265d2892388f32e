#pragma once

#include <holdfast/sequence.hpp>
#include <holdfast/version.hpp>

#include "sequence/core.hpp"
#include "sequence/own_process.hpp"
#include "sequence/wiped_page.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace HOLDFAST_NAMESPACE::detail {

/// What the copies of a source share, in every process.
/// Thread-safety: every function may be called from any thread.
class source_root {
 public:
  /// `options`: what was asked for when a database made the store.
  source_root(std::shared_ptr<block_store> store, sequence_environment around, sequence_store_options options = {});

  [[nodiscard]] source_core& core() { return here_.get(); }
  /// Keeps this process's alive.
  [[nodiscard]] std::shared_ptr<source_core> shared_core() { return here_.get().shared_from_this(); }
  [[nodiscard]] const sequence_environment& around() const noexcept { return around_; }
  [[nodiscard]] const sequence_store_options& options() const noexcept { return options_; }

 private:
  const sequence_environment around_;
  const sequence_store_options options_;
  own_process<source_core> here_;
};

/// Places for the state of handles, in memory that is wiped in a child. Without a lock: one that was held when the process was forked would
/// be held in the child for ever.
/// Thread-safety: every function may be called from any thread.
class handle_places {
 public:
  handle_places() = default;
  handle_places(const handle_places&) = delete;
  handle_places& operator=(const handle_places&) = delete;
  ~handle_places();

  [[nodiscard]] handle_window* take();
  void put(handle_window* done) noexcept;
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }

 private:
  struct chunk {
    wiped_page page{};
    std::atomic<std::uint64_t> used{0};  // a bit for each place
    std::atomic<chunk*> next{nullptr};
  };
  static constexpr std::size_t in_chunk = wiped_page::size / sizeof(handle_window);
  static_assert(in_chunk == 64);

  std::atomic<chunk*> first_{nullptr};
  std::atomic<std::uint64_t> taken_{0};
};

/// What a sequence and its handles share, in every process.
/// Thread-safety: every function may be called from any thread.
class sequence_root {
 public:
  sequence_root(std::shared_ptr<const sequence_config> config, std::shared_ptr<source_root> source,
                const std::shared_ptr<metrics_sink>& metrics);

  [[nodiscard]] const sequence_config& config() const noexcept { return *config_; }
  [[nodiscard]] sequence_window& window() const noexcept { return *window_; }
  [[nodiscard]] sequence_core& core() { return here_.get(); }
  /// Null in a child process that has none yet.
  [[nodiscard]] sequence_core* core_if_made() const noexcept { return here_.get_if(); }

  /// So many ids, or fewer with `partial`; the first one. Nothing: the time is up, and there is no deadline.
  std::optional<std::int64_t> draw(std::uint64_t& count, std::optional<sequence_core::time_point> deadline, bool partial);

  /// The same, for tickets that were drawn and are not sure.
  std::optional<std::int64_t> settle(std::uint64_t ticket, std::uint64_t& count, std::optional<sequence_core::time_point> deadline,
                                     bool partial);

  handle_places places{};

 private:
  const std::shared_ptr<const sequence_config> config_;
  const std::shared_ptr<source_root> source_;
  const std::shared_ptr<const sequence_instruments> numbers_;
  const std::shared_ptr<const wiped_page> page_;
  sequence_window* const window_;  // in the page
  own_process<sequence_core> here_;
};

}  // namespace HOLDFAST_NAMESPACE::detail
