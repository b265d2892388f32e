#pragma once

/// \file
/// Reads an interop value: one plain MessagePack document, as any CacheKit
/// library writes it. Nothing in the document is trusted: what it declares is
/// checked against what is there before memory is taken for it.

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <span>

namespace HOLDFAST_NAMESPACE::key {

/// How much an untrusted document may ask for. The rule that a document declares no more than its own bytes can hold has no switch.
struct decode_limits {
  std::size_t max_depth = max_height;              ///< containers inside each other, 32 to 1024; a value is never higher than max_height
  std::size_t max_bytes = std::size_t{512} << 20;  ///< of the document: 512 MiB
  std::size_t max_items = std::size_t{1} << 24;    ///< scalars and containers together
  /// Bytes of memory for the decoded value: 64 MiB. A value takes up to 80 times the byte that it comes from, and an envelope can hold 255
  /// times its own size. Raise it for lists of more than 800,000 items.
  std::size_t max_memory = std::size_t{64} << 20;
  bool temporal = true;  ///< maps like {"__date__": true, "value": "2024-01-31"} become instant, date, time_of_day
};

/// Reads exactly one document.
///
/// Any width of integers and headers, 32-bit floats (widened), any order and any type of map keys, and extensions are accepted.
/// A map that looks like a point in time, but whose text is not one, stays a map; so does a time without the zone it needs.
///
/// Throws holdfast::error with the path to the value (`value.items["a"][0]`; `.keys[n]` is the key of the n-th entry):
/// - errc::malformed: truncated, trailing bytes, more declared than is there, the reserved byte c1, a frame of CacheKit's Python auto mode
/// - errc::too_deep, errc::too_large: beyond the limits
/// - errc::ill_formed_text: text that is not UTF-8
/// - errc::duplicate: a map holds a key twice
/// - errc::invalid_argument: max_depth outside 32 to 1024, max_items 0
///
/// Time and memory grow linearly with the document (unsorted map keys: n log n); the stack does not grow with its depth.
/// Thread-safety: can be called from any thread.
[[nodiscard]] HOLDFAST_API value decode_value(std::span<const std::byte> document, const decode_limits& limits = {});

}  // namespace HOLDFAST_NAMESPACE::key
