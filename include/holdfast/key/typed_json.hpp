#pragma once

/// \file
/// Typed JSON: values as text, for example `{"t":"int","v":"42"}`. docs/typed-json.md lists all
/// forms.

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

/// The scheme that a value is read for. Some forms exist only in some schemes.
enum class scheme : std::uint8_t { failover, cachekit_auto, interop, interop_value };
/// The name of the enumerator, for example `failover`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(scheme value) noexcept;

/// Reads typed values. It keeps its buffers between calls, so reuse it.
/// Thread-safety: none; use one reader per thread.
class HOLDFAST_API typed_json_reader {
 public:
  explicit typed_json_reader(key::scheme scheme);
  typed_json_reader(typed_json_reader&&) noexcept;
  typed_json_reader& operator=(typed_json_reader&&) noexcept;
  ~typed_json_reader();

  /// Reads one typed value. Throws holdfast::error with the path to the value: errc::malformed (not
  /// JSON), errc::invalid_argument (not typed JSON), or the rule that the value breaks, for example
  /// errc::out_of_range.
  [[nodiscard]] value read(std::string_view json);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::key
