#pragma once

/// \file
/// Typed JSON: how a value is written where only text can travel: `{"t":"int","v":"42"}`. The forms are listed in docs/typed-json.md.

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

/// The scheme a value is meant for; a few forms exist only in some.
enum class scheme : std::uint8_t { failover, cachekit_auto, interop, interop_value };

/// Reads one typed value. Throws errc::malformed (not JSON), errc::invalid_argument (not typed JSON), or what the value itself breaks,
/// with the path to it.
/// Thread-safety: none; one reader per thread. It keeps its buffers, so reuse it.
class HOLDFAST_API typed_json_reader {
 public:
  explicit typed_json_reader(key::scheme meant_for);
  typed_json_reader(typed_json_reader&&) noexcept;
  typed_json_reader& operator=(typed_json_reader&&) noexcept;
  ~typed_json_reader();

  [[nodiscard]] value read(std::string_view json);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::key
