#pragma once

/// \file
/// Options of scattered calls: calls whose answers are stored and recovered slice by slice.

#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// Policy for a recovered answer with missing slices. An answer without any slice is never served.
class partial {
 public:
  enum class rule : std::uint8_t { keep, drop, fail, at_least };

  static const partial keep;  ///< serve it; missing slices are marked as missing
  static const partial drop;  ///< serve it without the missing slices
  static const partial fail;  ///< do not serve it
  /// As `keep` if at least this number of slices was recovered, else as `fail`.
  [[nodiscard]] static constexpr partial at_least(std::size_t slices) noexcept {
    return {rule::at_least, slices};
  }

  [[nodiscard]] constexpr rule policy() const noexcept { return rule_; }
  /// Whether an answer with this number of present and missing slices may be served.
  [[nodiscard]] constexpr bool allows(std::size_t present, std::size_t missing) const noexcept {
    if (missing == 0) return true;
    if (present == 0 || rule_ == rule::fail) return false;
    return rule_ != rule::at_least || present >= minimum_;
  }
  bool operator==(const partial&) const = default;

 private:
  constexpr partial(rule policy, std::size_t minimum) noexcept : minimum_(minimum), rule_(policy) {}
  std::size_t minimum_;
  rule rule_;
};
/// The name of the enumerator, for example `keep`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(partial::rule policy) noexcept;
inline constexpr partial partial::keep{rule::keep, 0};
inline constexpr partial partial::drop{rule::drop, 0};
inline constexpr partial partial::fail{rule::fail, 0};

/// What to do with a list whose manifest was never stored, has expired or cannot be read.
enum class unlisted : std::uint8_t {
  refuse,  ///< do not serve the list
  serve    ///< serve every row of the domain, for all arguments, with completeness `unknown`
};
/// The name of the enumerator, for example `refuse`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(unlisted policy) noexcept;

/// Options of protect_each, protect_list and protect_split.
struct scatter_options {
  /// Time limit for storing all slices of a call, and for recovering them.
  std::chrono::microseconds timeout = std::chrono::seconds(10);
  /// Number of threads that read the slices of one call. Each reads up to 250 slices at a time.
  std::size_t parallel = 16;
  /// Policy for an answer with missing slices.
  holdfast::partial partial = partial::keep;
  /// A call with more slices is not protected; a list with more is not stored. Both are counted.
  std::size_t max_slices = 10'000;
  /// Policy for a list without a manifest.
  holdfast::unlisted unlisted = unlisted::refuse;
};

}  // namespace HOLDFAST_NAMESPACE
