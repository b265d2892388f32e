#pragma once

/// \file
/// The outbox on Redis beside the raw scripts, sent by hiredis, on the same server, in the same run.

#include "ratio.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace holdfast::bench {

struct outbox_bench {
  std::string url;                                                       ///< redis:// or redis+unix://
  std::size_t rounds = 9;                                                ///< of each row; medians are compared
  std::size_t events = 10'000;                                           ///< in each round
  bool large = false;                                                    ///< also with a million events waiting
  std::function<void(std::uint64_t done, std::uint64_t of)> progress{};  ///< of filling the million; nobody is told unless given
};

/// Works under a prefix of its own, and removes its keys. Throws holdfast::error.
[[nodiscard]] std::vector<row> measure_outbox(const outbox_bench& what);

}  // namespace holdfast::bench
