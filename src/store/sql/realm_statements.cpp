#include "store/sql/realm_statements.hpp"

#include "sql/dialect.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

using sql::dialect_id;

/// Counts the time columns of type TIMESTAMP (1114) and TIMESTAMPTZ (1184). Both counts are 0 if
/// the table does not exist.
const sql::statement& count_time_columns() {
  static const sql::statement s{.text =
                                    "SELECT count(*) FILTER (WHERE atttypid = 1114), count(*) "
                                    "FILTER (WHERE atttypid = 1184) FROM "
                                    "pg_catalog.pg_attribute WHERE attrelid = "
                                    "pg_catalog.to_regclass($1) AND attname IN ('as_of', "
                                    "'expire_on')",
                                .parameters = {sql::type::text},
                                .results = {sql::type::integer, sql::type::integer}};
  return s;
}

const sql::statement& count_zones() {
  static const sql::statement s{
      .text = "SELECT count(*) FROM pg_catalog.pg_timezone_names WHERE name = $1",
      .parameters = {sql::type::text},
      .results = {sql::type::integer}};
  return s;
}

std::int64_t count_in(const sql::outcome& outcome, std::size_t column) {
  return std::get<std::int64_t>(outcome.rows.at(0, column));
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_offset(std::string_view zone) {
  const auto digit = [&](std::size_t i, char highest) {
    return zone[i] >= '0' && zone[i] <= highest;
  };
  return zone.size() == 6 && (zone[0] == '+' || zone[0] == '-') && digit(1, '1') && digit(2, '9') &&
         zone[3] == ':' && digit(4, '5') && digit(5, '9');
}

bool is_zone_name(std::string_view zone) {
  return zone.size() <= 64 && is_letter(zone[0]) && std::ranges::all_of(zone, [](char c) {
           return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '/' || c == '+' ||
                  c == '-';
         });
}

/// PostgreSQL reads the sign of an offset in a string as POSIX does, the other way round. An
/// interval has the usual sign.
std::string zone_expression(const std::string& zone) {
  return (is_offset(zone) ? "INTERVAL '" : "'") + zone + "'";
}

}  // namespace

// The zone becomes part of statements, so only names and offsets are accepted.
void check_zone(std::optional<dialect_id> dialect, std::string_view zone) {
  const auto fail = [](const std::string& message) {
    throw error(errc::invalid_argument, message, {.path = "zone"});
  };
  if (zone.empty()) return;
  if (dialect && sql::is_mysql(*dialect)) {
    // CONVERT_TZ leaves times after 2038 unchanged, so other zones would be wrong without an error.
    if (zone == "UTC" || zone == "+00:00") return;
    fail(
        "on MySQL and MariaDB the DATETIME columns are in UTC, and no other zone is possible; set "
        "the zone to UTC, and let Java write UTC");
  }
  if (dialect && dialect != dialect_id::postgresql)
    fail("a zone can be set only for PostgreSQL, MySQL and MariaDB; leave it out");
  if (!is_zone_name(zone) && !is_offset(zone))
    fail("the zone is neither a name like Europe/Paris or UTC nor an offset like +02:00");
}

realm_statements::realm_statements(dialect_id dialect, store_options options,
                                   execute_function execute)
    : dialect_(dialect), options_(std::move(options)), execute_(std::move(execute)) {
  check_zone(dialect_, options_.zone);
  for (const auto& [realm, prefix] : prefixes_of_realms(options_)) {
    auto& t = tables_[realm] = std::make_unique<table>();
    t->prefix = prefix;
    t->standard = make_statements(dialect_, prefix, options_);
    if (dialect_ != dialect_id::postgresql) t->selected = &t->standard;
  }
}

const store_statements& realm_statements::for_realm(std::string_view realm) {
  const auto it = tables_.find(realm);
  if (it == tables_.end()) {
    throw error(errc::invalid_argument,
                realm.empty() ? "the store is configured with tenants, but no tenant is given"
                              : "the store is not configured with this tenant",
                {.path = "realm"});
  }
  table& t = *it->second;
  if (t.selected.load(std::memory_order_acquire) == nullptr) select_statements(t);
  const auto* const selected = t.selected.load(std::memory_order_acquire);
  return selected != nullptr ? *selected : t.standard;
}

std::vector<std::string> realm_statements::realms() const {
  std::vector<std::string> names;
  names.reserve(tables_.size());
  for (const auto& [realm, t] : tables_) names.push_back(realm);
  return names;
}

void realm_statements::select_statements(table& t) {
  const std::string& name = t.standard.table;
  // errc::missing_object blames the table, not an entry: queued entries wait until it is repaired.
  const auto fail = [&](const std::string& message) {
    throw error(errc::missing_object, message, {.path = name});
  };
  const sql::parameter table_name[]{std::string_view(name)};
  sql::outcome columns;
  try {
    columns = execute_(count_time_columns(), table_name);
  } catch (const error& e) {
    // The server speaks PostgreSQL's protocol but has no such catalogue. Assume TIMESTAMPTZ.
    if (e.code() != errc::grammar && e.code() != errc::missing_object) throw;
    t.selected.store(&t.standard, std::memory_order_release);
    return;
  }
  const auto without_zone = count_in(columns, 0);
  const auto with_zone = count_in(columns, 1);
  // The table does not exist yet. The next statement reports that.
  if (without_zone + with_zone == 0) return;
  if (without_zone == 0) {
    t.selected.store(&t.standard, std::memory_order_release);
    return;
  }
  if (with_zone != 0)
    fail(
        "one of the columns AS_OF and EXPIRE_ON has a time zone and the other has not; make both "
        "TIMESTAMPTZ");
  if (options_.zone.empty()) {
    fail(
        "the columns AS_OF and EXPIRE_ON are TIMESTAMP without time zone, which means another "
        "moment in each zone; set the zone of the programs "
        "that write them (store_options::zone), or change both: ALTER TABLE " +
        name +
        " ALTER COLUMN AS_OF TYPE TIMESTAMPTZ USING AS_OF AT TIME ZONE 'UTC', ALTER COLUMN "
        "EXPIRE_ON TYPE TIMESTAMPTZ USING "
        "EXPIRE_ON AT TIME ZONE 'UTC'");
  }
  check_zone_exists();
  const std::scoped_lock lock(mutex_);
  if (t.zoned) return;
  t.zoned = std::make_unique<const store_statements>(
      make_statements(dialect_, t.prefix, options_, zone_expression(options_.zone)));
  t.selected.store(t.zoned.get(), std::memory_order_release);
}

void realm_statements::check_zone_exists() const {
  if (is_offset(options_.zone)) return;
  const sql::parameter zone[]{std::string_view(options_.zone)};
  if (count_in(execute_(count_zones(), zone), 0) == 0)
    throw error(
        errc::missing_object,
        "the database does not know the zone " + options_.zone + "; write it like Europe/Paris",
        {.path = "zone"});
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
