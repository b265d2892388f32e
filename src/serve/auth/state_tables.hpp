#pragma once

/// \file
/// The tables of tokens, sessions and the audit log.
///
///     HOLDFAST_SERVE_TOKEN     one row for each token; the hash, never the token
///     HOLDFAST_SERVE_SESSION   one row for each session of the console; the hash of its cookie
///     HOLDFAST_SERVE_AUDIT     append-only; ENTRY_ID grows with time
///     HOLDFAST_SERVE_CHANGE    how often tokens and sessions were changed, so that another process
///                              reads them again only after a change
///
/// Times are microseconds since 1970; 0 means never.

#include <holdfast/version.hpp>

#include "serve/auth/state_database.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

[[nodiscard]] sql::schema_set identity_tables();

/// Records that tokens or sessions were changed. Call it in the transaction of the change.
void count_change(state_session& session, std::string_view part);
/// A number that differs after each change of tokens or sessions.
[[nodiscard]] std::int64_t read_change_count(state_session& session);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
