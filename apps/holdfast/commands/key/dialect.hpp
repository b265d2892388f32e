#pragma once

#include <holdfast/key/cachekit.hpp>

#include <string_view>

namespace holdfast::cli {

/// The dialect of CacheKit keys for a value of `--dialect`. A former name of v1_0 is still
/// accepted.
[[nodiscard]] inline key::dialect key_dialect(std::string_view word) {
  if (word == "py_0_17") return key::dialect::py_0_17;
  return word == "v1_0" || word == "seed" ? key::dialect::v1_0 : key::dialect::current;
}

}  // namespace holdfast::cli
