#pragma once

/// \file
/// Routing keys, subjects and topics from a template such as `orders.{type}`.

#include <holdfast/outbox/event.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Thread-safety: immutable.
class destination_template {
 public:
  /// Throws errc::invalid_argument for an unknown placeholder or a brace without its partner.
  explicit destination_template(std::string_view text);

  [[nodiscard]] std::string expand(const holdfast::event& event) const;

 private:
  enum class field : std::uint8_t { literal, type, key, aggregate_type };
  struct part {
    field source = field::literal;
    std::string text{};
  };
  std::vector<part> parts_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
