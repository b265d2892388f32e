#pragma once

/// \file
/// Rules that hold for entries in every store: valid texts, valid times, and which entries of a put
/// are written.

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <span>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Throws errc::invalid_argument, errc::too_large or errc::ill_formed_text if the text does not fit
/// the published table.
void check_name(std::string_view name);
void check_key(std::string_view key);

/// Throws as check_name if a text does not fit, and errc::invalid_argument if the entry expires
/// before its as_of.
void check_entry(const entry& e);

/// Checks all entries of a put and returns those to write: not expired, one for each (realm, name,
/// key), sorted by these. Sorting prevents deadlocks between two writers; PostgreSQL refuses a row
/// that occurs twice in one statement.
[[nodiscard]] std::vector<const entry*> entries_to_write(std::span<const entry> entries,
                                                         timestamp now, timestamp horizon);

/// Sorts entries by (realm, name, key) and leaves one of each: the one that would remain if they
/// were put one after the other.
void keep_newest(std::vector<const entry*>& entries, timestamp horizon);

/// Returns `now + max_skew`, limited to the range of timestamp. A later as_of was written with a
/// wrong clock: any entry can replace an entry beyond this horizon.
[[nodiscard]] constexpr timestamp skew_horizon(timestamp now,
                                               std::chrono::microseconds max_skew) noexcept {
  return now > timestamp::max() - max_skew ? timestamp::max() : now + max_skew;
}

/// Throws errc::invalid_argument for more times than store::expiring takes.
void check_expiry_times(std::span<const timestamp> times);

/// Throws errc::invalid_argument if max_skew is negative.
HOLDFAST_API void check_max_skew(std::chrono::microseconds max_skew);

}  // namespace HOLDFAST_NAMESPACE::detail::store
