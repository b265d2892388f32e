// Programs that an application starts must not inherit its connections: they are logged in.

#include <holdfast/redis.hpp>

#include "sql/mysql/connection.hpp"
#include "sql/postgres/connection.hpp"
#include "sql/sqlite/connection.hpp"
#include "support/certificate.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>

namespace holdfast::test {
namespace {

using testing::Contains;
using testing::IsEmpty;

/// What the descriptors of a program that is started now lead to: `socket:[123]`, paths.
std::set<std::string> inherited() {
  struct closer {
    void operator()(std::FILE* pipe) const noexcept { ::pclose(pipe); }
  };
  const std::unique_ptr<std::FILE, closer> output(
      ::popen("for each in /proc/self/fd/*; do readlink $each; done", "r"));
  if (!output) throw std::runtime_error("cannot start a shell");
  std::set<std::string> found;
  std::array<char, 4096> line{};
  while (std::fgets(line.data(), line.size(), output.get()) != nullptr) {
    std::string target(line.data());
    if (target.ends_with('\n')) target.pop_back();
    if (!target.starts_with("pipe:") && !target.starts_with("/proc/"))
      found.insert(target);  // the shell's own
  }
  return found;
}

/// What a program inherits now, and did not inherit when the test began.
class InheritedDescriptors : public testing::Test {
 protected:
  [[nodiscard]] std::set<std::string> added() const {
    auto found = inherited();
    for (const auto& each : before_) found.erase(each);
    return found;
  }

  std::set<std::string> before_ = inherited();
};

// Shows that the tests below can fail.
TEST_F(InheritedDescriptors, AnOrdinaryOneIsFound) {
  const temporary_directory directory;
  const auto path = (directory.path() / "plain").string();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"),
                                                             &std::fclose);
  EXPECT_THAT(added(), Contains(path));
}

TEST_F(InheritedDescriptors, NoneOfMariadb) {
  const auto& server = shared_server<mariadb_server>();
  detail::sql::mysql_options options;
  options.port = server.port();
  options.user = "holdfast";
  options.password = "secret";
  options.database = "holdfast";
  const auto connection = detail::sql::connect_mysql(options);
  EXPECT_THAT(added(), IsEmpty());
}

TEST_F(InheritedDescriptors, NoneOfMariadbWithTls) {
  const certificate own("mysql");
  const mariadb_server server(
      {.settings = {"ssl-cert=" + own.file(), "ssl-key=" + own.key()}, .durable = false});
  before_ = inherited();
  detail::sql::mysql_options options;
  options.port = server.port();
  options.user = "holdfast";
  options.password = "secret";
  options.database = "holdfast";
  options.tls = true;
  options.tls_ca = own.file();
  const auto connection = detail::sql::connect_mysql(options);
  EXPECT_THAT(added(), IsEmpty()) << "neither the connection nor the copy that the watchdog has";
}

TEST_F(InheritedDescriptors, NoneOfPostgres) {
  const auto& server = shared_server<postgres_server>();
  const auto connection = detail::sql::connect_postgres({.connection_string = server.url()});
  EXPECT_THAT(added(), IsEmpty());
}

TEST_F(InheritedDescriptors, NoneOfSqlite) {
  const temporary_directory directory;
  const auto connection = detail::sql::connect_sqlite({.file = directory.path() / "a.db"});
  connection->run("CREATE TABLE t (a INTEGER)");
  connection->begin();
  connection->run("INSERT INTO t VALUES (1)");
  EXPECT_THAT(added(), IsEmpty()) << "the database, its log and its index";
  connection->rollback();
}

TEST_F(InheritedDescriptors, NoneOfRedis) {
  const redis::client client(shared_server<redis_server>().url());
  (void)client.call(redis::command("PING"));
  EXPECT_THAT(added(), IsEmpty());
}

}  // namespace
}  // namespace holdfast::test
