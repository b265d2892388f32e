#include "store/realm_statements.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using sql::dialect_id;

/// How many of the two columns are TIMESTAMP (1114), and how many TIMESTAMPTZ (1184); a table that is not there has neither.
const sql::statement& ask_for_columns() {
  static const sql::statement s{.text =
                                    "SELECT count(*) FILTER (WHERE atttypid = 1114), count(*) FILTER (WHERE atttypid = 1184) FROM "
                                    "pg_catalog.pg_attribute WHERE attrelid = pg_catalog.to_regclass($1) AND attname IN ('as_of', "
                                    "'expire_on')",
                                .parameters = {sql::type::text},
                                .results = {sql::type::integer, sql::type::integer}};
  return s;
}

const sql::statement& ask_for_zone() {
  static const sql::statement s{.text = "SELECT count(*) FROM pg_catalog.pg_timezone_names WHERE name = $1",
                                .parameters = {sql::type::text},
                                .results = {sql::type::integer}};
  return s;
}

bool is_offset(std::string_view zone) {
  const auto digit = [&](std::size_t i, char most) { return zone[i] >= '0' && zone[i] <= most; };
  return zone.size() == 6 && (zone[0] == '+' || zone[0] == '-') && digit(1, '1') && digit(2, '9') && zone[3] == ':' && digit(4, '5') &&
         digit(5, '9');
}

/// Part of a statement later, so it may consist of these characters only.
void check_zone(dialect_id dialect, std::string_view zone) {
  const auto fail = [](const std::string& why) { throw error(errc::invalid_argument, why, {.path = "zone"}); };
  if (zone.empty()) return;
  if (dialect == dialect_id::mysql || dialect == dialect_id::mariadb) {
    // CONVERT_TZ leaves times after 2038 unchanged, so other zones would be wrong without an error.
    if (zone == "UTC" || zone == "+00:00") return;
    fail("on MySQL and MariaDB the DATETIME columns are in UTC, and no other zone can be stated; write UTC, and let Java write UTC, too");
  }
  if (dialect != dialect_id::postgresql) fail("a zone can be stated for PostgreSQL, MySQL and MariaDB only; leave it out");
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '/' || c == '+' || c == '-';
  };
  const bool named = zone.size() <= 64 && ((zone[0] >= 'A' && zone[0] <= 'Z') || (zone[0] >= 'a' && zone[0] <= 'z')) &&
                     std::all_of(zone.begin(), zone.end(), plain);
  if (!named && !is_offset(zone)) fail("the zone is neither a name like Europe/Paris or UTC nor an offset like +02:00");
}

/// PostgreSQL counts the offset in a text the other way round, as POSIX does; an interval means what it says.
std::string zone_expression(const std::string& zone) { return (is_offset(zone) ? "INTERVAL '" : "'") + zone + "'"; }

}  // namespace

realm_statements::realm_statements(sql::dialect_id dialect, store_options options, ask how)
    : dialect_(dialect), options_(std::move(options)), ask_(std::move(how)) {
  check_zone(dialect_, options_.zone);
  for (const auto& [realm, prefix] : prefixes_of_realms(options_)) {
    auto& one = tables_[realm] = std::make_unique<table>();
    one->prefix = prefix;
    one->standard = make_statements(dialect_, prefix, options_);
    if (dialect_ != dialect_id::postgresql) one->said = &one->standard;
  }
}

const store_statements& realm_statements::in(std::string_view realm) {
  const auto found = tables_.find(realm);
  if (found == tables_.end()) {
    throw error(errc::invalid_argument,
                realm.empty() ? "no tenant is given, and the store is configured with tenants"
                              : "the tenant is not one of those that the store is configured with",
                {.path = "realm"});
  }
  table& one = *found->second;
  if (one.said.load(std::memory_order_acquire) == nullptr) look_at(one);
  const auto* const said = one.said.load(std::memory_order_acquire);
  return said != nullptr ? *said : one.standard;
}

std::vector<std::string> realm_statements::realms() const {
  std::vector<std::string> names;
  names.reserve(tables_.size());
  for (const auto& [realm, one] : tables_) names.push_back(realm);
  return names;
}

void realm_statements::look_at(table& one) {
  const std::string& name = one.standard.table;
  const auto count = [](const sql::outcome& from, std::size_t column) { return std::get<std::int64_t>(from.rows.at(0, column)); };
  // The table is at fault, and no entry: what is queued waits until somebody has mended it.
  const auto fail = [&](const std::string& why) { throw error(errc::missing_object, why, {.path = name}); };
  const sql::parameter table_name[]{std::string_view(name)};
  sql::outcome columns;
  try {
    columns = ask_(ask_for_columns(), table_name);
  } catch (const error& e) {
    // Something that speaks PostgreSQL's protocol without its catalogue: it is taken at its word.
    if (e.code() != errc::grammar && e.code() != errc::missing_object) throw;
    one.said.store(&one.standard, std::memory_order_release);
    return;
  }
  const auto without_zone = count(columns, 0);
  const auto with_zone = count(columns, 1);
  if (without_zone + with_zone == 0) return;  // it is not there yet: the statement that follows says so, and the next one asks again
  if (without_zone == 0) {
    one.said.store(&one.standard, std::memory_order_release);
    return;
  }
  if (with_zone != 0) fail("one of the columns AS_OF and EXPIRE_ON has a time zone and the other has not; make both TIMESTAMPTZ");
  if (options_.zone.empty()) {
    fail(
        "the columns AS_OF and EXPIRE_ON are TIMESTAMP without time zone, which means another moment in each zone; state the zone of those "
        "who write them (store_options::zone), or change both: ALTER TABLE " +
        name +
        " ALTER COLUMN AS_OF TYPE TIMESTAMPTZ USING AS_OF AT TIME ZONE 'UTC', ALTER COLUMN EXPIRE_ON TYPE TIMESTAMPTZ USING "
        "EXPIRE_ON AT TIME ZONE 'UTC'");
  }
  if (!is_offset(options_.zone)) {
    const sql::parameter zone[]{std::string_view(options_.zone)};
    if (count(ask_(ask_for_zone(), zone), 0) == 0)
      throw error(errc::missing_object, "the database does not know the zone " + options_.zone + "; write it like Europe/Paris",
                  {.path = "zone"});
  }
  const std::scoped_lock lock(mutex_);
  if (one.in_a_zone) return;
  one.in_a_zone = std::make_unique<const store_statements>(make_statements(dialect_, one.prefix, options_, zone_expression(options_.zone)));
  one.said.store(one.in_a_zone.get(), std::memory_order_release);
}

}  // namespace HOLDFAST_NAMESPACE
