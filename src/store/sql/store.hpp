#pragma once

/// \file
/// The store of entries on an SQL database.

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include "sql/context.hpp"

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Throws as `database::store`. Connects only if `options.start` is `require`.
[[nodiscard]] HOLDFAST_API std::shared_ptr<holdfast::store> make_sql_store(
    std::shared_ptr<sql::context> database, store_options options);

}  // namespace HOLDFAST_NAMESPACE::detail::store
