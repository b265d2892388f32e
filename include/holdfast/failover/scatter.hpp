#pragma once

/// \file
/// How calls for many things at once are stored and recovered, slice by slice.

#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace HOLDFAST_NAMESPACE {

/// What becomes of an answer of which some slices are missing. One of which all are missing is never served.
class partial {
 public:
  enum class rule : std::uint8_t { keep, drop, fail, at_least };

  static const partial keep;  ///< it is served; what is missing has its place, and says that it is missing
  static const partial drop;  ///< it is served without what is missing
  static const partial fail;  ///< it is not served, as if there were nothing
  /// Served, as `keep` does it, when so many slices are there; else not.
  [[nodiscard]] static constexpr partial at_least(std::size_t slices) noexcept { return {rule::at_least, slices}; }

  [[nodiscard]] constexpr rule what() const noexcept { return what_; }
  /// Whether an answer with so many slices, and so many missing, may be served.
  [[nodiscard]] constexpr bool allows(std::size_t there, std::size_t missing) const noexcept {
    if (missing == 0) return true;
    if (there == 0 || what_ == rule::fail) return false;
    return what_ != rule::at_least || there >= least_;
  }
  bool operator==(const partial&) const = default;

 private:
  constexpr partial(rule what, std::size_t least) noexcept : least_(least), what_(what) {}
  std::size_t least_;
  rule what_;
};
inline constexpr partial partial::keep{rule::keep, 0};
inline constexpr partial partial::drop{rule::drop, 0};
inline constexpr partial partial::fail{rule::fail, 0};

/// What happens to a list when nobody wrote down what belongs to it: its manifest was never stored, has expired or cannot be read.
enum class unlisted : std::uint8_t {
  refuse,  ///< there is nothing to serve
  serve    ///< every row of the domain is served, whatever was asked for; its completeness is `unknown`
};

/// Calls for many things at once.
struct scatter_options {
  std::chrono::microseconds timeout = std::chrono::seconds(10);  ///< of storing, and of recovering, all slices together
  std::size_t parallel = 16;                                     ///< slices of one call that are read at the same time
  holdfast::partial partial = partial::keep;                     ///< what becomes of an answer that is not whole
  std::size_t max_slices = 10'000;  ///< a call with more is not protected, and a list with more is not stored; both are counted
  holdfast::unlisted unlisted = unlisted::refuse;  ///< what becomes of a list without a manifest
};

}  // namespace HOLDFAST_NAMESPACE
