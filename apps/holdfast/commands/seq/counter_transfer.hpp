#pragma once

/// \file
/// The counters of sequences as JSON Lines, and back:
///
///     {"kind":"counter","name":"account.id","last":60,"epoch":1,"definition":"start=1 ..."}

#include <holdfast/sequence/block_store.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// Calls `write` for each counter, by name. Returns their number.
std::uint64_t export_counters(block_store& counters,
                              const std::function<void(const std::string&)>& write);

/// Raises the counter of a line to its last number plus `ahead`; never lowers it. Creates it with
/// its definition if it does not exist, unless the store keeps other definitions (a fence of
/// Redis). Throws errc::malformed or errc::invalid_argument for a line that cannot be read, and
/// errors of the store.
void import_counter(block_store& counters, std::string_view line, std::int64_t ahead);

}  // namespace holdfast::cli
