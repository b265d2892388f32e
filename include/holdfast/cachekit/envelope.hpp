#pragma once

/// \file
/// CacheKit's ByteStorage envelope: LZ4-compressed data with a checksum of the uncompressed data.
///
/// The checksum detects damage, not forgery: a program that can write the cache can also write a
/// valid checksum. See encryption.hpp for protection against forgery.

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

/// Largest size of the data, and of the envelope itself: 512 MiB.
inline constexpr std::size_t max_envelope_size = std::size_t{512} << 20;
/// Largest ratio of the size of the data to the compressed size.
inline constexpr std::size_t max_envelope_ratio = 1000;
/// Longest format name that wrap writes, in bytes.
inline constexpr std::size_t max_envelope_format = 255;

/// The contents of an envelope.
struct unwrapped {
  /// The data that were passed to wrap.
  byte_string data;
  /// The encoding of the data, for example `msgpack`.
  std::string format;
};

/// Packs data into an envelope: MessagePack `[compressed data, checksum, size, format]`.
///
/// Libraries compress differently, so the same data can give different envelopes. Each library
/// reads what the others write.
///
/// Throws errc::too_large beyond the limits above, errc::ill_formed_text if the format is not
/// UTF-8. Thread-safety: can be called from any thread.
[[nodiscard]] HOLDFAST_API byte_string wrap(std::span<const std::byte> data,
                                            std::string_view format = "msgpack");

/// Reads an envelope of any CacheKit library. Before protocol 1.1 libraries wrote the compressed
/// data as a list of integers; that form is accepted as well.
///
/// The envelope is not trusted: its declared size is checked against the compressed size before
/// memory is allocated.
///
/// Throws holdfast::error:
/// - errc::malformed: not an envelope, damaged data, a size that does not fit the data, or trailing
///   bytes
/// - errc::too_large: beyond the limits above
/// - errc::ill_formed_text: the format name is not UTF-8
/// - errc::tampered: the checksum does not match the data
///
/// Thread-safety: can be called from any thread.
[[nodiscard]] HOLDFAST_API unwrapped unwrap(std::span<const std::byte> envelope);

}  // namespace HOLDFAST_NAMESPACE::key
