#include "store/doctor/server_findings.hpp"

#include "sql/dialect.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

using sql::dialect_id;

/// A setting that decides whether an acknowledged write survives a power failure.
struct durability_setting {
  dialect_id dialect;
  std::string_view name;
  /// The unsafe values, separated by spaces. With `!` in front: all other values are unsafe.
  std::string_view unsafe_values;
  std::string_view consequence;
  /// Statements, separated by `; `.
  std::string_view repair;
  /// What to do if SQL cannot repair it.
  std::string_view advice{};
};
constexpr std::string_view loses_commits = "a power failure loses acknowledged writes";
constexpr std::string_view loses_all = "a power failure can destroy the database";
constexpr std::string_view also_in_configuration =
    "also set it under [mysqld] in the server's configuration";
constexpr std::array durability_settings{
    durability_setting{dialect_id::postgresql, "fsync", "off", loses_all,
                       "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf()"},
    durability_setting{dialect_id::postgresql, "full_page_writes", "off", loses_all,
                       "ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf()"},
    durability_setting{dialect_id::postgresql, "synchronous_commit", "off", loses_commits,
                       "ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf()"},
    durability_setting{dialect_id::mysql, "innodb_flush_log_at_trx_commit", "0 2", loses_commits,
                       "SET GLOBAL innodb_flush_log_at_trx_commit = 1", also_in_configuration},
    durability_setting{dialect_id::mysql, "innodb_doublewrite", "0 OFF", loses_all, "",
                       "set innodb_doublewrite=ON under [mysqld] in the server's configuration, "
                       "and restart the server"},
    durability_setting{dialect_id::sqlite, "synchronous", "0", loses_all, "",
                       "remove synchronous=off from the URL"},
    durability_setting{dialect_id::sqlite, "synchronous", "1", loses_commits, "",
                       "remove synchronous=normal from the URL"},
    durability_setting{dialect_id::sqlite, "journal_mode", "!wal",
                       "readers and the writer block each other", "",
                       "keep the file on a local disk, and remove vfs= from the URL"},
    durability_setting{dialect_id::sqlite, "file_system", "tmpfs ramfs",
                       "the file is in memory and is lost when the machine restarts", "",
                       "move it to a disk, and change the path in the URL"},
    durability_setting{dialect_id::sqlite, "file_system", "nfs cifs smb ceph 9p fuse",
                       "the file is not on a local disk, so locks and WAL are not reliable", "",
                       "move it to a local disk, and change the path in the URL"},
};

bool is_unsafe(std::string_view value, std::string_view unsafe_values) {
  const bool inverted = unsafe_values.starts_with('!');
  if (inverted) unsafe_values.remove_prefix(1);
  bool listed = false;
  while (!unsafe_values.empty()) {
    const auto space = unsafe_values.find(' ');
    listed = listed || unsafe_values.substr(0, space) == value;
    unsafe_values =
        space == std::string_view::npos ? std::string_view() : unsafe_values.substr(space + 1);
  }
  return listed != inverted;
}

std::vector<std::string> split_statements(std::string_view text) {
  std::vector<std::string> statements;
  while (!text.empty()) {
    const auto end = text.find("; ");
    statements.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 2);
  }
  return statements;
}

/// PostgreSQL reports where a value was set. The repair must change it there, since that source
/// overrides ALTER SYSTEM.
void repair_at_source(probe_finding& finding, const server_setting& setting,
                      const server_facts& server) {
  const std::string reset = " RESET " + setting.name;
  if (setting.source == "database") {
    finding.sql = {"ALTER DATABASE " + server.database + reset};
  } else if (setting.source == "user") {
    finding.sql = {"ALTER ROLE " + server.user + reset};
  } else if (setting.source == "database user") {
    finding.sql = {"ALTER ROLE " + server.user + " IN DATABASE " + server.database + reset};
  } else if (setting.source == "client") {
    finding.sql.clear();
    finding.advice = "remove it from the options in the URL";
  } else if (setting.source == "command line") {
    finding.sql.clear();
    finding.advice = "remove -c " + setting.name + " from the command line that starts the server";
  }
}

/// Returns whether a MySQL switch is on. Some versions report it as a number.
bool is_on(const server_setting* setting) {
  return setting != nullptr && setting->value != "0" && setting->value != "OFF";
}

std::int64_t number_of(const server_setting* setting) {
  std::int64_t number = 0;
  if (setting != nullptr)
    std::from_chars(setting->value.data(), setting->value.data() + setting->value.size(), number);
  return number;
}

void check_durability(const server_facts& server, std::vector<probe_finding>& findings) {
  const auto dialect = server.dialect == dialect_id::mariadb ? dialect_id::mysql : server.dialect;
  for (const auto& checked : durability_settings) {
    if (checked.dialect != dialect) continue;
    const auto* setting = server.find(checked.name);
    if (setting == nullptr || !is_unsafe(setting->value, checked.unsafe_values)) continue;
    findings.push_back({.code = std::string(checked.name),
                        .severity = severity::warning,
                        .problem = std::string(checked.name) + " is " + setting->value + ": " +
                                   std::string(checked.consequence),
                        .sql = split_statements(checked.repair),
                        .advice = std::string(checked.advice)});
    if (dialect == dialect_id::postgresql) repair_at_source(findings.back(), *setting, server);
  }
}

void check_mysql(const server_facts& server, std::vector<probe_finding>& findings) {
  if (is_on(server.find("log_bin")) && number_of(server.find("sync_binlog")) != 1) {
    findings.push_back(
        {.code = "sync_binlog",
         .severity = severity::warning,
         .problem = "sync_binlog is not 1: after a power failure replicas and server may differ",
         .sql = {"SET GLOBAL sync_binlog = 1"},
         .advice = std::string(also_in_configuration)});
  }
  constexpr std::int64_t enough = std::int64_t{8} << 20U;  // a batch and its overhead
  if (const auto* packet = server.find("max_allowed_packet");
      packet != nullptr && number_of(packet) < enough) {
    findings.push_back({.code = "max_allowed_packet",
                        .severity = severity::warning,
                        .problem = "max_allowed_packet is " + packet->value +
                                   ": larger batches and payloads are refused",
                        .sql = {"SET GLOBAL max_allowed_packet = 16777216"},
                        .advice = std::string(also_in_configuration)});
  }
  if (is_on(server.find("read_only"))) {
    findings.push_back({.code = "read_only",
                        .severity = severity::failing,
                        .problem = "the server is read-only: nothing can be written",
                        .sql = {"SET GLOBAL read_only = OFF"},
                        .advice = "if it is a replica, connect to the primary instead"});
  }
}

void check_postgresql(const server_facts& server, std::vector<probe_finding>& findings) {
  if (const auto* encoding = server.find("server_encoding");
      encoding != nullptr && encoding->value != "UTF8") {
    findings.push_back(
        {.code = "charset",
         .severity = severity::warning,
         .problem =
             "the encoding of the database is " + encoding->value +
             ", which cannot store every character; entries with such characters are refused",
         .advice = "create a database in UTF8 and name it in the URL: CREATE DATABASE "
                   "name ENCODING 'UTF8' TEMPLATE template0"});
  }
  if (const auto* standby = server.find("standby"); standby != nullptr && standby->value == "on") {
    findings.push_back(
        {.code = "read_only",
         .severity = severity::failing,
         .problem = "the server is a standby: nothing can be written",
         .advice =
             "name the primary in the URL, or all servers with target_session_attrs=read-write"});
  }
  if (const auto* read_only = server.find("default_transaction_read_only");
      read_only != nullptr && read_only->value == "on") {
    findings.push_back({.code = "read_only",
                        .severity = severity::failing,
                        .problem = "default_transaction_read_only is on: nothing can be written",
                        .sql = {"ALTER SYSTEM SET default_transaction_read_only = off",
                                "SELECT pg_reload_conf()"}});
    repair_at_source(findings.back(), *read_only, server);
  }
}

}  // namespace

std::vector<probe_finding> find_server_problems(const server_facts& server) {
  std::vector<probe_finding> findings;
  check_durability(server, findings);
  if (sql::is_mysql(server.dialect)) check_mysql(server, findings);
  if (server.dialect == dialect_id::postgresql) check_postgresql(server, findings);
  return findings;
}

std::vector<probe_finding> find_transport_problems(sql::transport_kind transport,
                                                   dialect_id dialect) {
  const std::string url_options =
      sql::is_mysql(dialect) ? "tls=1&tls_ca=FILE" : "sslmode=verify-full&sslrootcert=FILE";
  if (transport == sql::transport_kind::plaintext) {
    return {
        {.code = "plaintext",
         .severity = severity::warning,
         .problem = "the connection to another machine is not encrypted: payloads and the "
                    "login can be read and changed in transit",
         .advice = dialect == dialect_id::h2
                       ? "H2's PostgreSQL port has no TLS: use a TLS tunnel or a private network"
                       : "set up TLS on the server, and write " + url_options + " in the URL"}};
  }
  if (transport == sql::transport_kind::encrypted) {
    return {{.code = "unverified",
             .severity = severity::note,
             .problem = "the connection is encrypted, but the server was not verified: a program "
                        "in between could pose as the server",
             .advice = "write " + url_options +
                       " in the URL, with the authority that signed the server's certificate"}};
  }
  return {};
}

std::vector<probe_finding> find_intermediary_problems(std::string_view intermediary) {
  if (intermediary == "a pooler") {
    return {{.code = "pooler",
             .severity = severity::note,
             .problem =
                 "a pooler such as PgBouncer is in front of the server: workers of an outbox "
                 "poll for events, up to 200 ms apart, because it does not pass "
                 "notifications on",
             .advice = "use pool_mode = transaction or session, and ignore_startup_parameters = "
                       "options; for wake-ups without polling, give workers the server's own URL"}};
  }
  if (intermediary == "a proxy") {
    return {{.code = "proxy",
             .severity = severity::note,
             .problem = "a proxy or a forwarded port is in front of the server",
             .advice = "it must lead new connections to the server that accepts writes"}};
  }
  return {};
}

std::vector<probe_finding> find_clock_problems(std::chrono::microseconds skew,
                                               std::chrono::microseconds error_bound,
                                               std::chrono::microseconds max_skew) {
  using namespace std::chrono;
  const auto certain_skew = abs(skew) - error_bound;
  const bool beyond_limit = certain_skew > max_skew;
  if (!beyond_limit && certain_skew <= seconds(1)) return {};
  const auto tenths = duration_cast<milliseconds>(abs(skew)).count() / 100;
  const auto difference = std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
  return {{.code = "clock_skew",
           .severity = beyond_limit ? severity::failing : severity::warning,
           .problem =
               "the server's clock is " + difference +
               (skew.count() > 0 ? " ahead of ours" : " behind ours") +
               (beyond_limit ? ", more than max_skew: the newer of two entries cannot be determined"
                             : ": the newer of two entries is uncertain"),
           .advice = "synchronize both clocks: timedatectl set-ntp true"}};
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
