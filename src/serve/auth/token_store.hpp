#pragma once

/// \file
/// Tokens in the state database. The command line and the server use the same functions.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include "serve/auth/caller.hpp"
#include "serve/auth/state_database.hpp"
#include "serve/auth/token_text.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

inline constexpr std::size_t max_tokens = 10'000;

struct token_settings {
  /// 1 to 64 letters, digits and `._@-`. Empty: the role and the id.
  std::string name{};
  serve::role role = serve::role::application;
  /// Of an application. Empty: all.
  std::vector<std::string> scopes{};
  /// The only tenant that it sees. Empty: all.
  std::string tenant{};
  /// Up to 10 years.
  std::chrono::microseconds lifetime = std::chrono::days(90);
  /// Requests in a second. 0: no limit.
  std::uint32_t rate = 0;
};

struct token_record {
  std::string id{};
  std::string name{};
  serve::role role = serve::role::viewer;
  std::vector<std::string> scopes{};
  std::string tenant{};
  std::uint32_t rate = 0;
  timestamp created{};
  timestamp expires{};
  std::optional<timestamp> revoked{};
  std::optional<timestamp> last_used{};

  [[nodiscard]] bool is_usable(timestamp now) const noexcept { return !revoked && now < expires; }
};
/// `active`, `expired`, `revoked`.
[[nodiscard]] std::string_view token_state(const token_record& token, timestamp now) noexcept;

struct added_token {
  token_record record;
  /// The token. It cannot be shown again.
  std::string secret;
};

struct stored_token {
  token_record record{};
  secret_digest digest{};
};

/// Returns the role of a name: `viewer`, `operator`, `app`, `admin`. Throws errc::invalid_argument
/// with the path `role`.
[[nodiscard]] role parse_role(std::string_view name);

/// What a token and a client certificate may say: the name of a setting as the path, and why it is
/// refused, as errc::invalid_argument.
void check_rights(role owner, const std::vector<std::string>& scopes, const std::string& tenant);

/// Throws errc::invalid_argument with the name of the setting as the path, errc::duplicate if a
/// usable token has the name, errc::too_large beyond max_tokens, and errors of the database.
[[nodiscard]] added_token add_token(state_database& database, token_settings settings);

/// Tokens in the order of their ids, those after an id. Throws errors of the database.
[[nodiscard]] std::vector<stored_token> list_tokens(state_session& session, std::string_view after,
                                                    std::size_t limit);

/// Revokes a token by its id, by its text, or by its name if that is the name of one usable token.
/// Returns its record, or nothing if there is no such token. A token that was revoked before keeps
/// its time. Throws errors of the database.
std::optional<token_record> revoke_token(state_database& database, std::string_view token);

/// Deletes tokens that ended more than 30 days ago.
void forget_old_tokens(state_session& session, timestamp now);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
