#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include "http/response_reader.hpp"
#include "serve/gateway/response_fields.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// What has arrived of a response.
struct received_response {
  /// 0: no head yet.
  int status = 0;
  response_fields fields{};
  /// What is held or gathered of the content.
  std::string content{};
  /// All of the content that has arrived.
  std::uint64_t bytes = 0;
  /// Content-Length.
  std::optional<std::uint64_t> length{};

  /// Adds a Date if it has none.
  void read_head(const http::response_head& head, timestamp now);
  /// Server-sent events come when they happen.
  [[nodiscard]] bool is_event_stream() const;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
