#pragma once

#include <cstdint>

namespace holdfast::test {

/// A TCP port of 127.0.0.1 that nobody listens on, below 22768: outside the range the kernel takes
/// for outgoing connections, and so that port + 10000 (the bus of a Redis Cluster node) is, too. No
/// port is given twice by one process. Somebody else can take it between this call and the bind:
/// whoever starts a server tries again with another one. Thread-safe.
[[nodiscard]] std::uint16_t free_port();

}  // namespace holdfast::test
