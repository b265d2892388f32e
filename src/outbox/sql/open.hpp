#pragma once

#include <holdfast/outbox/backend.hpp>
#include <holdfast/version.hpp>

#include "sql/context.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// How events of one key are kept in order.
enum class key_order : std::uint8_t {
  locked,
  wrong_without_lock  ///< shows that the test of the order can fail
};

struct sql_outbox_setup {
  std::string prefix = "{identity:outbox}";
  std::size_t lanes = 1;
  bool create_schema = false;
  key_order order = key_order::locked;
};

/// Opens the outbox with this prefix. Throws errc::invalid_argument (bad prefix, or the outbox has
/// another number of lanes), errc::missing_object (tables) and errc::unsupported_type (dialect).
[[nodiscard]] HOLDFAST_API std::shared_ptr<outbox_backend> open_sql_outbox(
    std::shared_ptr<sql::context> context, const sql_outbox_setup& setup);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
