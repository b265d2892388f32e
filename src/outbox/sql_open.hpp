#pragma once

#include <holdfast/database.hpp>
#include <holdfast/outbox/backend.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::outboxes {

/// How events of one key are kept in order. The other one is there to show that the test of the order can fail.
enum class key_order : std::uint8_t { locked, wrong_without_lock };

struct sql_outbox_setup {
  std::string prefix = "{identity:outbox}";
  std::size_t lanes = 1;
  bool create_schema = false;
  key_order order = key_order::locked;
};

/// The outbox of this prefix on a database that speaks SQL; of those who open it at the same time all get the same one, so that who publishes
/// wakes who waits. Throws errc::invalid_argument (prefix, another number of lanes), errc::missing_object (tables), errc::unsupported_type.
[[nodiscard]] HOLDFAST_API std::shared_ptr<outbox_backend> open_sql_outbox(const std::shared_ptr<database::state>& on,
                                                                           const sql_outbox_setup& how);

}  // namespace HOLDFAST_NAMESPACE::outboxes
