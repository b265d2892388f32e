#pragma once

/// \file
/// Reads and writes a connected socket without blocking and without SIGPIPE.

#include "net/byte_stream.hpp"

#include <span>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::net {

/// `close_reason` is set if the result is `closed`.
[[nodiscard]] HOLDFAST_API io_result write_socket(int socket, std::string_view bytes,
                                                  std::string& close_reason);
[[nodiscard]] HOLDFAST_API io_result read_socket(int socket, std::span<char> buffer,
                                                 std::string& close_reason);

}  // namespace HOLDFAST_NAMESPACE::detail::net
