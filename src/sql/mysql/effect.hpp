#pragma once

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <cstdint>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

/// What a statement may change, judged by its keywords.
enum class effect : std::uint8_t {
  none,     ///< nothing
  rows,     ///< rows: a rollback undoes it
  anything  ///< tables, settings, sequences: a rollback does not undo it
};

/// Returns `anything` if the keywords are not known. Functions of the user that write inside a
/// SELECT are not detected.
[[nodiscard]] effect effect_of(std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
