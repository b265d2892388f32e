#pragma once

/// \file
/// Orders and checks the entries of a map by their keys.

#include <holdfast/key/writer.hpp>
#include <holdfast/version.hpp>

#include <span>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::key {

using namespace holdfast::key;

/// A map's key in a path or a message: `"a"`, `7`, `true`.
[[nodiscard]] std::string describe(const map_key& k);

/// Sorts entries as Python sorts the items of a dict: texts by code point, bytes bytewise, numbers
/// and booleans by value. Calls `w.fail` if two keys cannot be compared, or if a key occurs twice.
void sort_entries(const writer& w, std::span<map_slot> slots);

/// Calls `w.fail` if a key occurs twice. Does not change the order.
void refuse_duplicates(const writer& w, std::span<const map_slot> slots);

}  // namespace HOLDFAST_NAMESPACE::detail::key
