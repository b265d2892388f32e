#pragma once

/// \file
/// Which combinations of columns an event row can have, and what a damaged row is turned into. A
/// claim repairs the damaged rows that it reads, so that none of them stops a lane; a check repairs
/// all rows.
///
/// | PLACE | QUEUE | DUE | |
/// | --- | --- | --- | --- |
/// | queued | the key, or NULL without a key | any | |
/// | parked | NULL | NULL | |
/// | blocking | the key | set if RUN is | the first row of its queue, which other rows decide |
/// | remembered | NULL | NULL | has no entry |

#include "outbox/sql/event_table.hpp"

#include <optional>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// True if the row is not a combination of the table above.
[[nodiscard]] bool is_misplaced_row(const event_row& row, bool has_entry);

/// Restores the row as far as its columns and its entry tell. Keeps its position. If the state
/// cannot be restored, the row becomes a parked one with a reason. `entry_key` is the key in the
/// entry, if it can be read.
[[nodiscard]] event_row repaired_row(event_row row, bool has_entry,
                                     const std::optional<std::string>& entry_key);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
