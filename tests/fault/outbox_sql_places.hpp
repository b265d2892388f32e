#pragma once

/// \file
/// An outbox in each of the SQL databases, and what is in it.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>

#include "support/mariadb_server.hpp"
#include "support/own_handles.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::test {

inline constexpr auto prefix = "{fault}";

struct in_sqlite {
  using handle = sqlite_handle;
  static constexpr const char* name = "sqlite";
  temporary_directory directory{"outbox", "", medium::memory};
  [[nodiscard]] std::string url() const {
    return "sqlite://" + (directory.path() / "outbox.db").string();
  }
};
template <class Server, class Handle>
struct in_server {
  using handle = Handle;
  static constexpr const char* name = Server::endpoint::kind.data();
  const std::string place =
      shared_server<Server>().url(shared_server<Server>().create_database("outbox"));
  [[nodiscard]] std::string url() const { return place; }
};
using in_postgres = in_server<postgres_server, postgres_handle>;
using in_mariadb = in_server<mariadb_server, mariadb_handle>;

/// Connects: the tables exist when this returns.
inline outbox box_of(const std::string& url, bool create = false) {
  auto box = open(url).outbox({.prefix = prefix, .create_schema = create});
  if (const auto problem = box.admin().health()) throw error(*problem);
  return box;
}

inline std::vector<std::string> payloads(const outbox& box) {
  std::vector<std::string> found;
  std::string after;
  do {
    const auto page = box.admin().scan(scan_what::all, after, 500);
    for (const auto& one : page.records) found.push_back(one.details.event.payload);
    after = page.after;
  } while (!after.empty());
  return found;
}

template <class Handle>
std::vector<std::int64_t> numbers(Handle& mine, const std::string& question) {
  mine.run(Handle::begin);
  auto here = mine.joined();
  const auto found = here.execute({.text = question, .results = {sql::type::integer}}, {}).rows;
  mine.run("COMMIT");
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < found.size(); ++i)
    result.push_back(std::get<std::int64_t>(found.at(i, 0)));
  return result;
}

/// A test on each of them.
template <class Place>
class OnSqlDatabase : public testing::Test {
 protected:
  using handle = typename Place::handle;
  Place place{};
  const std::string url = place.url();
};
using sql_places = testing::Types<in_sqlite, in_postgres, in_mariadb>;

}  // namespace holdfast::test
