#pragma once

#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>

namespace HOLDFAST_NAMESPACE::detail::http {

/// What a reader accepts. The defaults are those of `holdfast serve`; a client that talks to a
/// server with large cookies or a gateway with large bodies changes them.
struct limits {
  /// Bytes of the request target.
  std::size_t target = std::size_t{8} << 10U;
  /// Bytes of one line of the head or of the trailers, with its line end.
  std::size_t line = (std::size_t{8} << 10U) + 64;
  /// Number of fields of the head, and of the trailers.
  std::size_t field_count = 100;
  /// Bytes of the head, and of the trailers.
  std::size_t head = std::size_t{16} << 10U;
  /// Bytes of the content.
  std::uint64_t body = std::uint64_t{1} << 20U;
  /// Bytes of all chunk extensions of a message.
  std::size_t chunk_extensions = std::size_t{1} << 10U;
};

}  // namespace HOLDFAST_NAMESPACE::detail::http
