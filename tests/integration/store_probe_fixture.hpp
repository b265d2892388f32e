#pragma once

/// \file
/// A database of each kind that a test may spoil, and what the probe says to it.

#include <holdfast/database.hpp>
#include <holdfast/store/probe.hpp>

#include "sql/sqlite/connection.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

using namespace std::chrono_literals;

/// A fresh, empty database.
class spoilable {
 public:
  explicit spoilable(sql::dialect_id dialect) {
    if (dialect == sql::dialect_id::postgresql) server_ = &shared_server<postgres_server>();
    if (dialect == sql::dialect_id::mariadb) server_ = &shared_server<mariadb_server>();
    if (server_ == nullptr) {
      directory_.emplace("probe");
      url_ = "sqlite://" + (directory_->path() / "x.db").string();
    } else {
      database_ = server_->create_database("probe");
      url_ = server_->url(database_);
    }
  }
  /// One on a server whose settings may be changed, too.
  explicit spoilable(const server_endpoint& server)
      : server_(&server), database_(server.create_database("probe")), url_(server.url(database_)) {}
  spoilable(const spoilable&) = delete;
  spoilable& operator=(const spoilable&) = delete;
  ~spoilable() {
    try {
      if (server_ != nullptr) server_->drop_database(database_);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }

  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  [[nodiscard]] const std::string& name() const noexcept { return database_; }
  [[nodiscard]] const server_endpoint& server() const noexcept { return *server_; }
  [[nodiscard]] std::string file() const {
    return directory_ ? (directory_->path() / "x.db").string() : std::string();
  }

  /// As administrator.
  void run(const std::string& sql) const {
    if (server_ != nullptr) server_->run(sql, database_);
    else detail::sql::connect_sqlite({.file = file()})->run(sql);
  }
  void run_all(const std::vector<std::string>& all) const {
    for (const auto& each : all) {
      SCOPED_TRACE(each);
      EXPECT_NO_THROW(run(each)) << each;
    }
  }

  /// By connections of its own, as a new process would.
  [[nodiscard]] probe_report look(store_options options = {}, database_options how = {}) const {
    return probe(open(url_, std::move(how)), options);
  }
  void create(store_options options = {}) const {
    options.create_schema = true;
    options.start = start_mode::require;
    (void)open(url_).store(std::move(options));
  }

 private:
  const server_endpoint* server_ = nullptr;
  std::optional<temporary_directory> directory_{};
  std::string database_{};
  std::string url_{};
};

inline const probe_finding* find(const probe_report& in, std::string_view code) {
  const auto found = std::find_if(in.findings.begin(), in.findings.end(),
                                  [code](const auto& each) { return each.code == code; });
  return found == in.findings.end() ? nullptr : &*found;
}

/// All that was found, for the message of a failed test.
inline std::string told(const probe_report& report) {
  std::string all = report.server + "\n";
  for (const auto& each : report.findings) {
    all.append(to_string(each.severity))
        .append(" ")
        .append(each.code)
        .append(": ")
        .append(each.problem)
        .append("\n");
    for (const auto& sql : each.sql) all.append("    ").append(sql).append(";\n");
    all.append("    ").append(each.advice).append("\n");
  }
  return all;
}

inline entry make_entry(std::string key, std::string payload = "{}") {
  const auto now = system_clock()->now();
  return {.name = "n",
          .key = std::move(key),
          .as_of = now,
          .expire_on = now + 1h,
          .payload = std::move(payload),
          .payload_class = "c"};
}

}  // namespace holdfast::test
