#pragma once

#include <holdfast/database.hpp>
#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE {

/// Throws errc::invalid_argument when a table of this dialect, opened like this, cannot be shared with whom the options name.
void check_peer(sql::dialect_id dialect, const store_options& options);

/// Throws errc::invalid_argument for an entry that the Java library would never look for, or could not read: a key that is none of its
/// UUIDs, a payload class that is no class of Java.
void check_for_java(const entry& e);

}  // namespace HOLDFAST_NAMESPACE
