#pragma once

/// \file
/// What schema.cpp shares with the doctor.

#include <holdfast/database.hpp>
#include <holdfast/schema.hpp>
#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::detail::schema {

/// Returns the options with a prefix of the outbox: if it is empty, the default that is in use on
/// this database. Throws errors of the database.
[[nodiscard]] schema_options complete_options(const database::state& state, schema_options options);

}  // namespace HOLDFAST_NAMESPACE::detail::schema
