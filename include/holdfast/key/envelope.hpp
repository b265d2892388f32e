#pragma once

/// \file
/// CacheKit's ByteStorage envelope: LZ4-compressed bytes with a checksum of
/// what they unpack to. It finds damage, not forgery: whoever can write the
/// store can write the checksum too. See encryption.hpp for that.

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

/// The most that an envelope carries, and the most that it may take itself: 512 MiB.
inline constexpr std::size_t max_envelope_size = std::size_t{512} << 20;
/// How many times larger than its packed form the data may be.
inline constexpr std::size_t max_envelope_ratio = 1000;
/// The longest name of a format that is written, in bytes.
inline constexpr std::size_t max_envelope_format = 255;

/// What was in an envelope.
struct unwrapped {
  byte_string data;    ///< as it was given to wrap
  std::string format;  ///< how to read it, for example `msgpack`
};

/// Packs data into an envelope: MessagePack `[packed data, checksum, size, format]`.
/// The packed bytes are not the same in every library, and need not be: each reads what the others write.
///
/// Throws errc::too_large beyond the limits above and errc::ill_formed_text for a format that is not UTF-8.
/// Thread-safety: can be called from any thread.
[[nodiscard]] HOLDFAST_API byte_string wrap(std::span<const std::byte> data, std::string_view format = "msgpack");

/// Reads an envelope of any CacheKit library, those from before protocol 1.1 included (they wrote the packed data as a list of integers).
/// Nothing is believed: the declared size is compared with the packed one before memory is taken for it.
///
/// Throws holdfast::error:
/// - errc::malformed: not an envelope, damaged packed data, a size that does not fit them, trailing bytes
/// - errc::too_large: beyond the limits above
/// - errc::ill_formed_text: the name of the format is not UTF-8
/// - errc::tampered: the checksum is not that of the data
/// Thread-safety: can be called from any thread.
[[nodiscard]] HOLDFAST_API unwrapped unwrap(std::span<const std::byte> envelope);

}  // namespace HOLDFAST_NAMESPACE::key
