#pragma once

#include <holdfast/key/writer.hpp>
#include <holdfast/version.hpp>

#include <span>
#include <string>

namespace HOLDFAST_NAMESPACE::key {

/// How a map's key appears in a path or a message: `"a"`, `7`, `true`.
[[nodiscard]] std::string shown(const map_key& k);

/// Sorts entries as Python sorts the items of a dict: texts by code point, bytes bytewise, numbers and booleans by value.
/// Fails on the writer when keys of two kinds cannot be compared, or one comes twice.
void sort_entries(const writer& on, std::span<map_slot> slots);

/// Fails on the writer when a key comes twice. Leaves the order as it is.
void refuse_duplicates(const writer& on, std::span<const map_slot> slots);

}  // namespace HOLDFAST_NAMESPACE::key
