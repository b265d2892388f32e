// holdfast serve token add, list and revoke.

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/log.hpp>

#include "base/secret.hpp"
#include "commands/database_location.hpp"
#include "commands/groups.hpp"
#include "serve/auth/rate_limit.hpp"
#include "serve/auth/state_database.hpp"
#include "serve/auth/state_tables.hpp"
#include "serve/auth/token_store.hpp"
#include "serve/config/server_config.hpp"
#include "terminal/password_option.hpp"
#include "terminal/table.hpp"
#include "terminal/text.hpp"
#include "terminal/time_text.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

namespace serve = detail::serve;

/// The state database of the server.
struct state_location {
  option url;
  option config;
  password_option password;

  explicit state_location(command& cmd)
      : url(cmd.value("--state", "URL",
                      "State of the server (default sqlite: and $STATE_DIRECTORY/serve.db or "
                      "~/.local/state/holdfast/serve.db)")),
        config(cmd.value("--config", "FILE",
                         "Instead of --state: the file of 'holdfast serve', which has serve.state")
                   .file()),
        password(cmd) {}

  /// Unless `create` is set, the file must exist.
  [[nodiscard]] std::unique_ptr<serve::state_database> open_state(console& io, bool create) const {
    const auto address = state_url(create);
    auto database = std::make_unique<serve::state_database>(
        serve::state_database_options{.url = url_to_open(address, create),
                                      .password = password.read(io),
                                      .clock = system_clock(),
                                      .log = std::make_shared<const logger>(io.sink())});
    database->add_tables(serve::identity_tables());
    if (!create) check_file(*database);
    return database;
  }

 private:
  [[nodiscard]] std::string state_url(bool create) const {
    if (url.is_set() && config.is_set())
      throw error(errc::invalid_argument,
                  "--state and --config exclude each other; give one of them, not both");
    if (url.is_set()) return url.text();
    if (config.is_set()) {
      const detail::secret_text text(detail::failover::config::read_text(config.text()));
      if (auto configured = serve::config::read_state_url(config.text(), text.view());
          !configured.empty())
        return configured;
    }
    return serve::default_state_url(create);
  }
  static void check_file(serve::state_database& database) {
    try {
      (void)database.read("state.open");
    } catch (const error& problem) {
      if (problem.code() != errc::not_found) throw;
      throw error(errc::not_found,
                  "there is no state of a server at " + database.shown_url() +
                      "; check --state or --config, or add a token with: holdfast serve token add");
    }
  }
};

std::string json_time(const std::optional<timestamp>& time) {
  return time ? json_string(iso_time(*time)) : "null";
}

std::string rate_text(std::uint32_t rate) {
  return rate == 0 ? std::string() : std::to_string(rate) + "/s";
}

/// Without the closing brace. The members are those of GET /v1/tokens.
std::string json_of(const serve::token_record& token, timestamp now) {
  return "{\"id\":" + json_string(token.id) + ",\"name\":" + json_string(token.name) +
         ",\"role\":" + json_string(to_string(token.role)) +
         ",\"scopes\":" + json_list(token.scopes) + ",\"tenant\":" + json_string(token.tenant) +
         ",\"rate\":" + json_string(rate_text(token.rate)) +
         ",\"state\":" + json_string(serve::token_state(token, now)) +
         ",\"createdAt\":" + json_time(token.created) +
         ",\"expiresAt\":" + json_time(token.expires) +
         ",\"revokedAt\":" + json_time(token.revoked) +
         ",\"lastUsedAt\":" + json_time(token.last_used);
}

std::vector<std::string> row_of(const serve::token_record& token, timestamp now) {
  std::string scopes;
  for (const auto& scope : token.scopes) scopes += (scopes.empty() ? "" : ",") + scope;
  if (!token.tenant.empty()) scopes += (scopes.empty() ? "" : " ") + ("tenant=" + token.tenant);
  if (token.rate != 0) scopes += (scopes.empty() ? "" : " ") + ("rate=" + rate_text(token.rate));
  return {token.id,
          std::string(serve::token_state(token, now)),
          std::string(to_string(token.role)),
          iso_time(token.expires).substr(0, 10),
          token.last_used ? iso_time(*token.last_used).substr(0, 19) + "Z" : "never",
          printable(token.name),
          printable(scopes)};
}

void add_token_add(command group) {
  command cmd = group.add("add", "Add a token, and print it once");
  cmd.about(
      "Writes the token to standard output. Only its hash is kept, so it cannot be shown again. A "
      "running server accepts it within a second. An app may do what its scopes allow, and "
      "everything if it has none; a part * of a scope stands for any name.");
  cmd.examples(
      "holdfast serve token add --role admin --name alice\n"
      "holdfast serve token add --role admin --config /etc/holdfast/serve.toml\n"
      "holdfast serve token add --role app --scope outbox:orders:publish --scope 'store:*:read' "
      "--tenant acme --name shop --expires 30d --rate 100/s");
  const option role = cmd.value("--role", "", "What the token may do (default app)")
                          .one_of({"viewer", "operator", "app", "admin"});
  const option scopes = cmd.values("--scope", "SCOPE", "A scope of the role app: store:main:read");
  const option tenant = cmd.value("--tenant", "T", "The only tenant that the token sees");
  const option name = cmd.value("--name", "N", "Name of the token (default the role and its id)");
  const option expires = cmd.value("--expires", "TIME", "Life of the token: 90d (default), 12h");
  const option rate = cmd.value("--rate", "RATE", "Limit of requests: 100/s (default no limit)");
  const option json = cmd.flag("--json", "Print one JSON object");
  const state_location location(cmd);
  cmd.run([=](console& io) {
    serve::token_settings settings{.name = name.text(),
                                   .role = serve::parse_role(role.text("app")),
                                   .scopes = scopes.all(),
                                   .tenant = tenant.text()};
    if (expires.is_set()) settings.lifetime = parse_duration(expires.text());
    if (rate.is_set()) settings.rate = serve::parse_rate(rate.text());
    const auto database = location.open_state(io, true);
    const auto token = serve::add_token(*database, std::move(settings));
    if (json.is_set()) {
      io.out << json_of(token.record, database->clock().now())
             << ",\"token\":" << json_string(token.secret) << "}\n";
      return exit_ok;
    }
    io.out << token.secret << "\n";
    return exit_ok;
  });
}

void add_token_list(command group) {
  command cmd = group.add("list", "List the tokens, without their secrets");
  cmd.about(
      "A server writes once a minute when a token was last used. Tokens that ended are deleted "
      "after 30 days.");
  cmd.examples("holdfast serve token list\nholdfast serve token list --json");
  const option json = cmd.flag("--json", "Print one JSON object per line");
  const state_location location(cmd);
  cmd.run([=](console& io) {
    const auto database = location.open_state(io, false);
    const auto now = database->clock().now();
    auto session = database->read("token.list");
    const auto tokens = serve::list_tokens(session, "", serve::max_tokens * 2);
    long_table rows(io.out, {"id", "state", "role", "expires", "last used", "name", "scopes"});
    for (const auto& token : tokens) {
      if (json.is_set()) io.out << json_of(token.record, now) << "}\n";
      else rows.add(row_of(token.record, now));
    }
    rows.finish();
    return exit_ok;
  });
}

void add_token_revoke(command group) {
  command cmd = group.add("revoke", "Revoke a token, and end its sessions");
  cmd.about(
      "A running server refuses it within two seconds. Exit code 1 if there is no such token.");
  cmd.examples("holdfast serve token revoke k3m9x2pa\nholdfast serve token revoke shop");
  const option token = cmd.positional("TOKEN", "Its id, or its name").required();
  const option json = cmd.flag("--json", "Print one JSON object");
  const state_location location(cmd);
  cmd.run([=](console& io) {
    const auto database = location.open_state(io, false);
    const bool revoked = serve::revoke_token(*database, token.text()).has_value();
    if (json.is_set()) io.out << "{\"revoked\":" << (revoked ? "true" : "false") << "}\n";
    if (revoked) return exit_ok;
    io.warn("there is no such token; see: holdfast serve token list");
    return exit_negative;
  });
}

}  // namespace

void add_token_commands(command serve) {
  command group = serve.add("token", "Add, list and revoke the tokens of the server");
  group.examples(
      "holdfast serve token add --role app --scope outbox:orders:publish --name shop\n"
      "holdfast serve token list\n"
      "holdfast serve token revoke shop");
  add_token_add(group);
  add_token_list(group);
  add_token_revoke(group);
}

}  // namespace holdfast::cli
