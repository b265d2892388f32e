#pragma once

/// \file
/// Decodes an interop value: one MessagePack document, written by any CacheKit library.
///
/// The document is not trusted. Every declared size is checked against the remaining bytes before
/// memory is allocated. To encode a value, see encode_value in key/interop.hpp.

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <span>

namespace HOLDFAST_NAMESPACE::key {

/// Limits for an untrusted document. A document that declares more than its own bytes can hold is
/// always refused; that check cannot be turned off.
struct decode_limits {
  /// Levels of nested containers, 32 to 1024. A value is never higher than max_height.
  std::size_t max_depth = max_height;
  /// Size of the document: 512 MiB.
  std::size_t max_bytes = std::size_t{512} << 20;
  /// Scalars and containers together.
  std::size_t max_items = std::size_t{1} << 24;
  /// Memory of the decoded value: 64 MiB. One byte of a document can become a value of 80 bytes,
  /// and an envelope can hold 255 times its own size. Raise the limit for lists of more than
  /// 800,000 items.
  std::size_t max_memory = std::size_t{64} << 20;
  /// Whether maps like {"__date__": true, "value": "2024-01-31"} become instant, date or
  /// time_of_day.
  bool temporal = true;
  /// Whether a time without a UTC offset becomes an instant in UTC. Python writes such times for
  /// its naive datetimes. Set it if the Python application keeps its datetimes in UTC; otherwise
  /// the map stays a map.
  bool naive_as_utc = false;
};

/// Decodes exactly one document.
///
/// Accepts integers and headers of any width, 32-bit floats (which are widened), map keys of any
/// type in any order, and extensions. A map that is marked as a time stays a map if its text is not
/// a valid time, or lacks the UTC offset that an instant needs.
///
/// Throws holdfast::error with the path to the value, for example `value.items["a"][0]`, where
/// `.keys[n]` is the key of the n-th entry:
/// - errc::malformed: truncated, trailing bytes, declares more than it holds, the reserved byte c1,
///   or a frame of CacheKit for Python (see frame.hpp)
/// - errc::too_deep, errc::too_large: beyond the limits
/// - errc::ill_formed_text: text that is not UTF-8
/// - errc::duplicate: a map has a key twice
/// - errc::invalid_argument: max_depth is outside 32 to 1024, or max_items is 0
///
/// Time and memory are linear in the size of the document, except that unsorted map keys take
/// n log n. The stack does not grow with the depth.
/// Thread-safety: can be called from any thread.
[[nodiscard]] HOLDFAST_API value decode_value(std::span<const std::byte> document,
                                              const decode_limits& limits = {});

}  // namespace HOLDFAST_NAMESPACE::key
