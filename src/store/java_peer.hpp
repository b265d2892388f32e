#pragma once

/// \file
/// Checks for tables that are shared with the Java library (store_options::peer).

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <optional>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Throws errc::invalid_argument if a table of this dialect cannot be shared with the peer that the
/// options name. If the dialect is not known yet: if no table could be shared.
void check_peer(std::optional<sql::dialect_id> dialect, const store_options& options);

/// Throws errc::invalid_argument for an entry that the Java library could not find or read: a key
/// that is not one of its UUIDs, or a payload class that is not a Java class name.
void check_for_java(const entry& e);

}  // namespace HOLDFAST_NAMESPACE::detail::store
