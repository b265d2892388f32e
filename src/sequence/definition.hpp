#pragma once

/// \file
/// The definition of a sequence: what all its users must agree on, as one line of text that is kept
/// with the counter.
///
///     start=1 increment=1 end=9223372036854775807 cycle=no failover_skip=1000000
///     `------------- which ids the ordinals are -----------´ `---- the store ----´
///
/// Two users with different definitions would make the same ids of different ordinals, or would not
/// both keep the promise of the fence.

#include <holdfast/error.hpp>
#include <holdfast/sequence/options.hpp>
#include <holdfast/version.hpp>

#include "sequence/id_range.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// The part about ids.
[[nodiscard]] HOLDFAST_API std::string definition_of(const sequence_options& options);

/// The value of a field, such as `start`, in a definition. Nothing if there is no such field.
[[nodiscard]] HOLDFAST_API std::optional<std::string> definition_field(std::string_view definition,
                                                                       std::string_view field);

/// Sets start, increment, the limits and cycle to those of a definition. Throws errc::malformed if
/// the definition cannot be read.
HOLDFAST_API void read_definition(std::string_view definition, sequence_options& options);

/// The error for a counter that has another definition.
[[nodiscard]] error definition_mismatch(std::string_view name, std::string_view stored,
                                        std::string_view requested);

/// The last ordinal that a counter must have after its definition was changed, so that every new id
/// lies beyond every id of the old definition, also those that are leased and not used yet. `last`:
/// the last ordinal granted so far.
///
/// Ids of one direction only grow (or only fall) with the ordinals, under both definitions. So it
/// is enough that the first new id is beyond the last old one. By induction this also holds for
/// definitions before the old one.
///
/// Throws errc::invalid_argument if the direction changes, or if ids repeat under the old
/// definition and must not under the new one; errc::out_of_range if the new limits leave no id.
[[nodiscard]] HOLDFAST_API std::int64_t last_after_redefinition(const sequence_options& before,
                                                                const sequence_options& after,
                                                                std::int64_t last);

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
