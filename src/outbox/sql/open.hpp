#pragma once

/// \file
/// Opening an outbox on SQL: it connects at the first operation, which creates or checks the
/// tables.

#include <holdfast/outbox/backend.hpp>
#include <holdfast/version.hpp>

#include "outbox/default_prefix.hpp"
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
  std::string prefix{};  ///< empty: a default, see default_prefix.hpp
  std::size_t lanes = 1;
  bool create_schema = false;
  bool allow_unsafe = false;  ///< see outbox_options
  key_order order = key_order::locked;
};

class sql_backend;
class statement_builder;
enum class lock_scope : std::uint8_t;

/// Returns the outbox with this prefix. Does not wait for a server. Throws errc::invalid_argument
/// for a bad prefix and errc::unsupported_type for a dialect that the URL tells.
[[nodiscard]] HOLDFAST_API std::shared_ptr<sql_backend> open_sql_outbox(
    std::shared_ptr<sql::context> context, const sql_outbox_setup& setup);

/// Returns which of the outboxes with a default prefix the database has. Throws errors of the
/// database.
[[nodiscard]] HOLDFAST_API default_outboxes
find_default_outboxes(const std::shared_ptr<sql::context>& context);

/// Creates the tables if the setup says so, and checks them. Returns which transactions see the
/// locks of the server. Throws errc::invalid_argument if the outbox has another number of lanes or
/// its tables belong to another prefix, errc::missing_object if a table is missing,
/// errc::unsupported_type if this code does not work with the version of the tables, and errors of
/// the database.
lock_scope prepare_tables(const std::shared_ptr<sql::context>& context,
                          const statement_builder& builder, const sql_outbox_setup& setup);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
