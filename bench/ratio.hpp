#pragma once

/// \file
/// Measures our work beside its floor: the raw library doing the least that could do the same. A figure alone says more about the
/// machine than about the code; a ratio in one run says what the code adds. Both sides are run in turn, in short rounds, and medians are
/// compared, so that a noisy moment meets both and decides nothing.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::bench {

/// Makes the compiler believe that a result is used.
template <class T>
inline void keep(const T& result) noexcept {
  asm volatile("" : : "r"(&result) : "memory");
}

/// Which side of the bar is the good one.
enum class bar_is : std::uint8_t {
  at_most,  ///< ratio <= bar: times
  at_least  ///< ratio >= bar: rates
};

/// One comparison. The functions do the work `times` times in a row.
struct contest {
  std::string name;  ///< stable: others read it
  double bar = 1;
  bar_is side = bar_is::at_most;
  std::function<void(std::uint64_t times)> ours;
  std::function<void(std::uint64_t times)> floor;  ///< empty when the floor is a fixed rate
  double fixed_floor = 0;                          ///< per second; then ours is a rate as well
  std::string unit = "ns";
};

struct row {
  std::string name;
  double ours = 0;
  double floor = 0;
  std::string unit;
  double ratio = 0;
  double bar = 0;
  bar_is side = bar_is::at_most;
  bool holds = false;
};

struct settings {
  std::size_t rounds = 101;
  double round_seconds = 0.001;  ///< how long each side runs in one round
};

/// A row that misses its bar is measured again, at most twice, and its best counts: what is slow stays slow, what was disturbed does not.
[[nodiscard]] row measure(const contest& what, const settings& how = {});

/// `{"bench":"keys","rows":[...]}` with a line end.
[[nodiscard]] std::string to_json(std::string_view bench, const std::vector<row>& rows);
/// For people: aligned columns, with a heading.
[[nodiscard]] std::string to_table(const std::vector<row>& rows);

}  // namespace holdfast::bench
