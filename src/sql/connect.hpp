#pragma once

#include <holdfast/database.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE::sql {

/// What makes connections to the database of a URL. Throws errc::invalid_argument for a URL that cannot be meant, and for a kind of
/// database that this build was made without.
[[nodiscard]] connection_factory connector(std::string_view url, const database_options& options);

}  // namespace HOLDFAST_NAMESPACE::sql
