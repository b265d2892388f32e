#pragma once

#include <holdfast/sequence/block_store.hpp>
#include <holdfast/sequence/options.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// How many ids sequences have, which their definitions say. The thread that asks the database
/// reads some of them in each turn; the sampler takes what is known.
/// Thread-safety: may be called from any thread; `ask` by one at a time.
class sequence_ends {
 public:
  /// `defaults` are those of sequences without a definition.
  sequence_ends(std::shared_ptr<block_store> blocks, sequence_options defaults)
      : blocks_(std::move(blocks)), defaults_(std::move(defaults)) {}

  /// Reads the definitions that are not known, or were read long ago. Throws as
  /// block_store::definition.
  void ask(const std::vector<named_counter>& counters);
  /// The part of the ids that is left, from 0 to 1. Nothing if the definition is not known, or if
  /// the sequence starts again at its end.
  [[nodiscard]] std::optional<double> part_remaining(const std::string& name,
                                                     std::int64_t last) const;

 private:
  using steady_time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t names_in_a_turn = 20;
  static constexpr std::chrono::minutes lifetime{5};
  struct cached_end {
    std::optional<std::int64_t> limit{};  // empty: it has no end, or its definition is not readable
    steady_time read{};
  };
  [[nodiscard]] std::vector<std::string> unknown_names(const std::vector<named_counter>& counters,
                                                       steady_time now);
  [[nodiscard]] std::optional<std::int64_t> read_limit(const std::string& name) const;

  const std::shared_ptr<block_store> blocks_;
  const sequence_options defaults_;
  mutable std::mutex mutex_{};
  std::map<std::string, cached_end> cached_{};  // of the counters of the last turn
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
