#pragma once

/// \file
/// Points whose calls are made by other programs, in any language: they report answers, and ask for
/// the last good one when their upstream fails.

#include <holdfast/failover/engine.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// An answer as it came: JSON text, unchanged.
struct json_answer {
  std::string json{};
  std::optional<timestamp> expires{};  ///< empty: as the point says. Not stored in the payload.
};
[[nodiscard]] std::string holdfast_encode(const json_answer& answer);
[[nodiscard]] json_answer holdfast_decode(std::string_view bytes, std::type_identity<json_answer>);

/// Registers points when they are first used: those of the configuration, and up to
/// `most_new_points` others, which have the defaults of the engine. Thread-safety: every function
/// may be called from any thread.
class call_points {
 public:
  using call_point = point<std::optional<json_answer>(const run_time_arguments&)>;
  static constexpr std::size_t most_new_points = 200;

  /// Registers the points of the configuration that do not exist yet. Throws what engine::protect
  /// throws.
  call_points(std::shared_ptr<engine> engine, const std::vector<std::string>& configured);

  /// Throws errc::invalid_argument for an impossible name, errc::duplicate if the server itself
  /// protects calls of this name, errc::too_large beyond `most_new_points`.
  [[nodiscard]] call_point get(std::string_view name);

 private:
  call_point add(const std::string& name);

  const std::shared_ptr<engine> engine_;
  std::mutex mutex_{};
  std::map<std::string, call_point, std::less<>> points_{};
  std::size_t new_points_ = 0;
};

/// The arguments of a call from typed JSON, one text for each. Throws with the path `args[2]`.
[[nodiscard]] run_time_arguments read_arguments(const std::vector<std::string>& typed_json);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
