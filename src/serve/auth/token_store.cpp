#include "serve/auth/token_store.hpp"

#include <holdfast/error.hpp>

#include "base/hex.hpp"
#include "base/utf8.hpp"
#include "http/syntax.hpp"
#include "serve/auth/state_tables.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::size_t max_scopes = 50;
constexpr std::size_t max_scope_size = 78;  // so that 50 of them fit into the column
constexpr std::size_t max_token_tenant = 128;

/// The scopes of the endpoints. `*` stands for a name.
constexpr std::array<std::string_view, 10> scope_forms{
    "store:*:read",     "store:*:write", "point:*:read", "point:*:write",   "outbox:*:read",
    "outbox:*:publish", "outbox:*:work", "outbox:*:act", "sequence:*:next", "key:make"};
constexpr auto longest_token_life = std::chrono::days(3'653);
constexpr auto kept_after_end = std::chrono::days(30);

constexpr std::string_view token_columns =
    "TOKEN_ID, HASH, NAME, ROLE_NAME, SCOPES, TENANT, RATE, CREATED_ON, EXPIRES_ON, REVOKED_ON, "
    "LAST_USED";

[[noreturn]] void refuse_setting(const char* path, const std::string& message) {
  throw error(errc::invalid_argument, message, {.path = path});
}

bool has_only(std::string_view text, std::string_view punctuation) noexcept {
  return std::ranges::all_of(text, [punctuation](char c) {
    return http::is_alpha(c) || http::is_digit(c) || punctuation.find(c) != std::string_view::npos;
  });
}

bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

void check_token_settings(const token_settings& settings) {
  if (settings.name.size() > 64 || !has_only(settings.name, "._@-"))
    refuse_setting("name", "the name has at most 64 letters, digits and the characters . _ @ -");
  check_rights(settings.role, settings.scopes, settings.tenant);
  if (settings.lifetime < std::chrono::seconds(1) || settings.lifetime > longest_token_life)
    refuse_setting("expires", "a token expires after 1 second to 10 years; for example 90d");
  if (settings.rate > 1'000'000) refuse_setting("rate", "the rate is at most 1000000/s");
}

std::vector<std::string_view> parts_of(std::string_view scope) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto colon = scope.find(':');
    parts.push_back(scope.substr(0, colon));
    if (colon == std::string_view::npos) return parts;
    scope.remove_prefix(colon + 1);
  }
}

/// Whether a scope can grant something. A part `*` of it stands for any text.
bool has_known_form(std::string_view scope) {
  const auto parts = parts_of(scope);
  return std::ranges::any_of(scope_forms, [&](std::string_view form) {
    return std::ranges::equal(
        parts, parts_of(form), [](std::string_view part, std::string_view form_part) {
          return !part.empty() && (part == "*" || form_part == "*" || part == form_part);
        });
  });
}

std::string join_scopes(const std::vector<std::string>& scopes) {
  std::string text;
  for (const auto& scope : scopes) text += (text.empty() ? "" : " ") + scope;
  return text;
}

std::vector<std::string> split_scopes(std::string_view text) {
  std::vector<std::string> scopes;
  while (!text.empty()) {
    const auto scope = text.substr(0, text.find(' '));
    if (!scope.empty()) scopes.emplace_back(scope);
    text.remove_prefix(std::min(scope.size() + 1, text.size()));
  }
  return scopes;
}

std::optional<timestamp> optional_time(const sql::rows& rows, std::size_t row, std::size_t column) {
  const auto microseconds = integer_of(rows, row, column);
  if (microseconds == 0) return std::nullopt;
  return to_time(microseconds);
}

/// Returns nothing for a row that this program did not write.
std::optional<stored_token> read_token(const sql::rows& rows, std::size_t row) {
  stored_token token;
  token.record.id = text_of(rows, row, 0);
  const auto hash = text_of(rows, row, 1);
  if (hash.size() != token.digest.size() * 2 || !from_hex(hash, token.digest.data()))
    return std::nullopt;
  token.record.name = text_of(rows, row, 2);
  try {
    token.record.role = parse_role(text_of(rows, row, 3));
  } catch (const error&) {
    return std::nullopt;
  }
  token.record.scopes = split_scopes(text_of(rows, row, 4));
  token.record.tenant = text_of(rows, row, 5);
  token.record.rate =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(integer_of(rows, row, 6), 0, 1'000'000));
  token.record.created = to_time(integer_of(rows, row, 7));
  token.record.expires = to_time(integer_of(rows, row, 8));
  token.record.revoked = optional_time(rows, row, 9);
  token.record.last_used = optional_time(rows, row, 10);
  return token;
}

std::vector<sql::type> token_column_types() {
  using enum sql::type;
  return {text, text, text, text, text, text, integer, integer, integer, integer, integer};
}

std::vector<stored_token> read_tokens(const sql::rows& rows) {
  std::vector<stored_token> tokens;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (auto token = read_token(rows, row)) tokens.push_back(std::move(*token));
  }
  return tokens;
}

std::vector<stored_token> select_tokens(state_session& session, std::string_view condition,
                                        std::initializer_list<sql::parameter> parameters) {
  return read_tokens(session.query("SELECT " + std::string(token_columns) +
                                       " FROM HOLDFAST_SERVE_TOKEN WHERE " + std::string(condition),
                                   parameters, token_column_types()));
}

void insert_token(state_session& session, const token_record& token, const std::string& hash) {
  const auto count =
      session.query("SELECT COUNT(*) FROM HOLDFAST_SERVE_TOKEN", {}, {sql::type::integer});
  if (integer_of(count, 0, 0) >= static_cast<std::int64_t>(max_tokens))
    throw error(errc::too_large,
                "there are " + std::to_string(max_tokens) +
                    " tokens already; revoke some, they are deleted 30 days later");
  for (const auto& other : select_tokens(session, "NAME = ?", {std::string_view(token.name)})) {
    if (other.record.is_usable(token.created))
      throw error(errc::duplicate,
                  "the token " + other.record.id +
                      " has this name; revoke it first, or choose another name",
                  {.path = "name"});
  }
  const auto scopes = join_scopes(token.scopes);
  session.execute("INSERT INTO HOLDFAST_SERVE_TOKEN (" + std::string(token_columns) +
                      ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)",
                  {std::string_view(token.id), std::string_view(hash), std::string_view(token.name),
                   to_string(token.role), nullable(scopes), nullable(token.tenant),
                   std::int64_t{token.rate}, to_integer(token.created), to_integer(token.expires)});
  count_change(session, "token");
}

/// The token that a person means.
std::optional<stored_token> find_token(state_session& session, std::string_view token,
                                       timestamp now) {
  const auto id = token_id_of(token).value_or(token);
  if (is_token_id(id)) {
    auto tokens = select_tokens(session, "TOKEN_ID = ?", {id});
    if (!tokens.empty()) return std::move(tokens.front());
  }
  auto tokens = select_tokens(session, "NAME = ?", {token});
  std::erase_if(tokens, [now](const auto& each) { return !each.record.is_usable(now); });
  if (tokens.size() != 1) return std::nullopt;
  return std::move(tokens.front());
}

}  // namespace

std::string_view token_state(const token_record& token, timestamp now) noexcept {
  if (token.revoked) return "revoked";
  return now < token.expires ? "active" : "expired";
}

role parse_role(std::string_view name) {
  for (const auto each : {role::viewer, role::operator_, role::application, role::admin}) {
    if (to_string(each) == name) return each;
  }
  throw error(errc::invalid_argument, "the role must be viewer, operator, app or admin",
              {.path = "role"});
}

void check_rights(role owner, const std::vector<std::string>& scopes, const std::string& tenant) {
  if (!scopes.empty() && owner != role::application)
    refuse_setting("scopes", "only the role app has scopes; the other roles act on everything");
  if (scopes.size() > max_scopes)
    refuse_setting("scopes", "at most " + std::to_string(max_scopes) + " scopes are accepted");
  for (const auto& scope : scopes) {
    if (scope.empty() || scope.size() > max_scope_size || !has_only(scope, "._@-:*%"))
      refuse_setting("scopes",
                     "a scope has at most 78 letters, digits and the characters . _ @ - * %, with "
                     "colons between its parts; for example outbox:orders:publish");
    if (!has_known_form(scope)) {
      std::string forms = "there is no scope '" + scope + "'; use ";
      const auto start = forms.size();
      for (auto form : scope_forms) {
        forms += forms.size() == start ? "" : ", ";
        if (const auto star = form.find('*'); star != std::string_view::npos)
          forms.append(form.substr(0, star)).append("NAME").append(form.substr(star + 1));
        else forms += form;
      }
      refuse_setting("scopes", forms.append("; a part * stands for any name"));
    }
  }
  if (tenant.size() > max_token_tenant || !is_utf8(tenant) ||
      std::ranges::any_of(tenant, is_control))
    refuse_setting("tenant",
                   "the tenant has at most 128 bytes of UTF-8 without control characters");
  // Such an admin could add a token for all tenants.
  if (!tenant.empty() && owner == role::admin)
    refuse_setting("tenant", "an admin sees all tenants; choose the role operator or viewer");
}

added_token add_token(state_database& database, token_settings settings) {
  check_token_settings(settings);
  auto text = make_token_text();
  const auto now = database.clock().now();
  if (settings.name.empty()) settings.name = std::string(to_string(settings.role)) + "-" + text.id;
  added_token token{.record = {.id = text.id,
                               .name = std::move(settings.name),
                               .role = settings.role,
                               .scopes = std::move(settings.scopes),
                               .tenant = std::move(settings.tenant),
                               .rate = settings.rate,
                               .created = now,
                               .expires = now + settings.lifetime},
                    .secret = std::move(text.secret)};
  const auto hash = to_hex(sha256(token.secret));
  auto session = database.write("token.add");
  session.transact([&] { insert_token(session, token.record, hash); });
  return token;
}

std::vector<stored_token> list_tokens(state_session& session, std::string_view after,
                                      std::size_t limit) {
  return select_tokens(session, "TOKEN_ID > ? ORDER BY TOKEN_ID" + std::string(session.row_limit()),
                       {after, static_cast<std::int64_t>(limit)});
}

std::optional<token_record> revoke_token(state_database& database, std::string_view token) {
  const auto now = database.clock().now();
  auto session = database.write("token.revoke");
  std::optional<stored_token> revoked;
  session.transact([&] {
    revoked = find_token(session, token, now);
    if (!revoked || revoked->record.revoked) return;
    revoked->record.revoked = now;
    session.execute("UPDATE HOLDFAST_SERVE_TOKEN SET REVOKED_ON = ? WHERE TOKEN_ID = ?",
                    {to_integer(now), std::string_view(revoked->record.id)});
    count_change(session, "token");
  });
  if (!revoked) return std::nullopt;
  return std::move(revoked->record);
}

void forget_old_tokens(state_session& session, timestamp now) {
  const auto limit = to_integer(now - kept_after_end);
  session.execute(
      "DELETE FROM HOLDFAST_SERVE_TOKEN WHERE EXPIRES_ON < ? OR (REVOKED_ON > 0 AND REVOKED_ON < "
      "?)",
      {limit, limit});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
