#pragma once

/// \file
/// The frame that CacheKit for Python (0.17) puts around the values of its auto mode:
///
///     "CK"  03  length of the header (4 bytes, big-endian)  header (JSON)  payload
///
/// The header names the encoding of the payload. By default the payload is a ByteStorage envelope
/// (envelope.hpp) around one MessagePack document; with `enable_integrity_checking=False` it is the
/// document itself.
///
/// Only CacheKit for Python reads and writes this frame. For values that all languages read, use
/// interop mode.

#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

/// Longest header that unwrap_frame reads, in bytes. CacheKit writes about 120.
inline constexpr std::size_t max_frame_header = std::size_t{64} << 10;

/// What is in a frame. It must fit the `enable_integrity_checking` of the Python application, which
/// fails to read the other one.
enum class frame_payload : std::uint8_t {
  envelope,  ///< an envelope: `enable_integrity_checking=True`, the default of CacheKit
  document   ///< the document itself: `enable_integrity_checking=False`
};
/// The name of the enumerator, for example `envelope`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(frame_payload payload) noexcept;

/// Puts one MessagePack document, as encode_value writes it, into a frame: the bytes that
/// CacheKit for Python stores under a key of auto mode.
///
/// Throws errc::too_large as wrap does. Thread-safety: can be called from any thread.
[[nodiscard]] HOLDFAST_API byte_string wrap_frame(std::span<const std::byte> document,
                                                  frame_payload payload = frame_payload::envelope);

/// Returns the document of a frame; pass it to decode_value. The frame is not trusted.
///
/// Throws holdfast::error:
/// - errc::malformed: not a frame, another version of frames, or a damaged header or envelope
/// - errc::too_large: the header is longer than max_frame_header, or as unwrap
/// - errc::unsupported_type: the payload is encrypted, or is not MessagePack (Arrow, JSON)
/// - errc::tampered: the checksum of the envelope does not match
///
/// Treat each of them as a cache miss. Thread-safety: can be called from any thread.
[[nodiscard]] HOLDFAST_API byte_string unwrap_frame(std::span<const std::byte> frame);

}  // namespace HOLDFAST_NAMESPACE::key
