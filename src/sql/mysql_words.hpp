#pragma once

#include <holdfast/version.hpp>

#include <cstdint>
#include <string_view>

namespace HOLDFAST_NAMESPACE::sql::mysql {

/// What a statement may do, as far as its words tell.
enum class effect : std::uint8_t {
  reads,    ///< nothing
  rows,     ///< change rows: a transaction can take it back
  anything  ///< change tables, settings, sequences: no transaction takes that back
};

/// When in doubt, `anything`. `SELECT NEXT VALUE FOR s` and SETVAL count up a sequence; functions of the user's own that write inside a
/// SELECT are not known here.
[[nodiscard]] effect effect_of(std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
