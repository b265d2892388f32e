#include "commands/bench/private_area.hpp"

#include <holdfast/error.hpp>
#include <holdfast/outbox/sql.hpp>
#include <holdfast/sequence.hpp>
#if HOLDFAST_HAS_REDIS
#include <holdfast/redis.hpp>
#endif

#include "base/url.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <random>
#include <utility>

namespace holdfast::cli {

namespace {

/// `BENCH_1A2B3C4D_`. A part of the names of all tables and keys.
std::string random_prefix() {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "BENCH_%08X_", std::random_device{}());
  return text.data();
}

/// The path of the SQLite file of a URL if the file does not exist; otherwise empty.
std::string missing_sqlite_file(const std::string& url) {
  if (!url.starts_with("sqlite:")) return {};
  const auto parts = detail::parse_url(url);
  const std::string path = (parts.has_authority ? "/" : "") + parts.path;
  std::error_code ignored;
  return path.empty() || std::filesystem::exists(path, ignored) ? std::string() : path;
}

/// The table of a CREATE TABLE statement, which may be inside a block; otherwise empty.
std::string created_table(const std::string& statement) {
  const std::string_view create = "CREATE TABLE ";
  const auto position = statement.find(create);
  if (position == std::string::npos) return {};
  std::string_view rest = std::string_view(statement).substr(position + create.size());
  const std::string_view if_missing = "IF NOT EXISTS ";
  if (rest.starts_with(if_missing)) rest.remove_prefix(if_missing.size());
  return std::string(rest.substr(0, rest.find_first_of(" (\n")));
}

/// The table of schema versions, which the benchmark shares with the tables of others.
constexpr std::string_view version_table = "HOLDFAST_SCHEMA";

/// Deletes the versions of tables. Drops the table of versions if it is empty then.
void remove_versions(sql::connection& connection, const std::vector<std::string>& tables) {
  const std::string versions(version_table);
  for (const std::string& table : tables)
    connection.run("DELETE FROM " + versions + " WHERE UPPER(SET_NAME) = UPPER('" + table + "')");
  const auto rows =
      connection
          .execute({.text = "SELECT COUNT(*) FROM " + versions, .results = {sql::type::integer}},
                   {})
          .rows;
  if (std::get<std::int64_t>(rows.at(0, 0)) == 0) connection.run("DROP TABLE " + versions);
}

}  // namespace

private_area::private_area(console& io, std::string url, std::string password, std::size_t threads)
    : io_(io),
      url_(std::move(url)),
      password_(std::move(password)),
      prefix_(random_prefix()),
      created_file_(missing_sqlite_file(url_)),
      database_(open(url_, {.pool = {.maximum = std::max<std::size_t>(20, threads + 4)},
                            .password = password_})) {
  try {
    (void)database_.dialect();
  } catch (...) {
    remove_created_file();
    throw;
  }
}

private_area::~private_area() {
  try {
    remove();
  } catch (const std::exception& problem) {
    try {
      io_.warn("cannot remove what the benchmark created, all of it named " + prefix_ +
               "...: " + problem.what());
    } catch (...) {
      // Standard error is closed.
    }
  }
}

bool private_area::on_sql() const { return database_.dialect() != sql::dialect_id::unknown; }

bool private_area::on_redis() const { return url_.starts_with("redis"); }

void private_area::connect_redis() {
#if HOLDFAST_HAS_REDIS
  if (const auto problem = redis::client(url_, {.password = password_}).health())
    throw error(*problem);
  has_keys_ = true;
#endif
}

std::string private_area::kind() const {
  return on_sql() ? std::string(to_string(database_.dialect())) : url_.substr(0, url_.find(':'));
}

std::shared_ptr<store> private_area::open_store() {
  const store_options options{.prefix = prefix_,
                              .create_schema = true,
                              .probe = start_probe::off,
                              .start = start_mode::require};
  if (on_sql()) add_tables(store_schema(database_.dialect(), options));
  return database_.store(options);
}

sequence_store_options private_area::sequence_location() {
  // The ids are used by this benchmark only, so it does not matter if the server forgets them.
  sequence_store_options options{.prefix = prefix_, .create_schema = true, .allow_unsafe = true};
  if (on_sql()) add_tables(sequence_schema(database_.dialect(), options));
  if (on_redis()) {
    options.fence = no_fence{};
    connect_redis();
  }
  return options;
}

outbox private_area::open_outbox(std::string_view purpose, outbox_options options) {
  options.prefix = "{" + prefix_ + std::string(purpose) + "}";
  options.create_schema = true;
  options.allow_eviction = true;
  options.lane_alarm = 0;
  if (on_sql()) add_tables(outbox_schema(database_.dialect(), options.prefix));
  if (on_redis()) connect_redis();
  return database_.outbox(std::move(options));
}

void private_area::add_tables(const std::vector<std::string>& create_statements) {
  for (const std::string& statement : create_statements) {
    if (std::string table = created_table(statement); !table.empty() && table != version_table)
      tables_.push_back(std::move(table));
  }
}

void private_area::remove() const {
  if (has_keys_) remove_keys();
  else if (created_file_.empty()) drop_tables();
  else remove_created_file();
}

void private_area::remove_created_file() const {
  if (created_file_.empty()) return;
  std::error_code ignored;
  for (const auto* suffix : {"", "-wal", "-shm", "-journal"})
    std::filesystem::remove(created_file_ + suffix, ignored);
}

void private_area::drop_tables() const {
  if (tables_.empty()) return;
  std::string problem;
  const auto drop_all = [this, &problem](sql::connection& connection) {
    const auto dialect = connection.dialect();
    const std::string drop =
        dialect == sql::dialect_id::oracle ? "DROP TABLE " : "DROP TABLE IF EXISTS ";
    const auto attempt = [&problem](const auto& removal) {
      try {
        removal();
      } catch (const error& failure) {
        if (failure.code() != errc::missing_object) problem = failure.what();
      }
    };
    for (const std::string& table : tables_) attempt([&] { connection.run(drop + table); });
    attempt([&] { remove_versions(connection, tables_); });
    return dialect;
  };
  // Asking for the dialect lends a connection.
  (void)open(url_, {.password = password_, .resolve_dialect = drop_all}).dialect();
  if (!problem.empty()) throw error(errc::unavailable, problem);
}

void private_area::remove_keys() const {
#if HOLDFAST_HAS_REDIS
  const redis::client client(url_, {.password = password_});
  for (const redis::node& node : client.nodes()) {
    if (!node.master) continue;
    const redis::call_options on_node{.node = client.is_cluster() ? node.address : std::string()};
    std::string cursor = "0";
    do {
      const auto page = client.call(redis::command("SCAN")
                                        .arg(cursor)
                                        .arg("MATCH")
                                        .arg("*" + prefix_ + "*")
                                        .arg("COUNT")
                                        .arg("1000")
                                        .idempotent(),
                                    on_node);
      cursor = page.elements().at(0).text();
      for (const auto& key : page.elements().at(1).elements())
        client.call(redis::command("UNLINK").key(key.text()).idempotent());
    } while (cursor != "0");
  }
#endif
}

}  // namespace holdfast::cli
