#pragma once

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <span>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// Throws errc::invalid_argument or errc::too_large when a name or a key does not fit the published table, or is not text.
void check_name(std::string_view name);
void check_key(std::string_view key);

/// Throws errc::invalid_argument, too_large or ill_formed_text for an entry that no store may keep.
void check_entry(const entry& e);

/// What of these entries is to be written: each valid, none expired, one for each (realm, name, key), the newest, sorted. Sorting keeps two
/// writers from waiting for each other, and PostgreSQL refuses a row that comes twice.
[[nodiscard]] std::vector<const entry*> to_be_written(std::span<const entry> entries, timestamp now, timestamp horizon);

/// Beyond this moment a stored stamp is not believed; the end of time when the skew is that large.
[[nodiscard]] timestamp skew_horizon(timestamp now, std::chrono::microseconds max_skew);

/// Throws errc::invalid_argument for a skew that would make every stamp unbelievable.
void check_skew(std::chrono::microseconds max_skew);

}  // namespace HOLDFAST_NAMESPACE
