// URLs, database files and tables from an attacker must not make the process load or leak anything.

#include <holdfast/database.hpp>
#include <holdfast/redis.hpp>

#include "sql/sqlite/connection.hpp"
#include "support/certificate.hpp"
#include "support/failure_of.hpp"
#include "support/mariadb_server.hpp"
#include "support/odbc_drivers.hpp"
#include "support/recording_server.hpp"
#include "support/scoped_environment.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using testing::HasSubstr;
using testing::Not;

/// The library of this test creates the file `mark_` when it is loaded.
class LoadedLibrary : public testing::Test {
 protected:
  [[nodiscard]] bool was_loaded() const { return std::filesystem::exists(mark_); }
  static void open_and_connect(const std::string& url) {
    (void)open(url, {.connect_timeout = 5s})
        .store({.probe = start_probe::off, .start = start_mode::require});
  }

  const std::string driver_ = HOLDFAST_TEST_EVIL_DRIVER;
  temporary_directory directory_{};
  std::filesystem::path mark_ = directory_.path() / "loaded";
  scoped_environment mark_variable_{"EVIL_DRIVER_MARK", mark_.string()};
};

// ---- ODBC

using OdbcDriverFile = LoadedLibrary;

TEST_F(OdbcDriverFile, IsNotLoaded) {
  const scoped_environment files("HOLDFAST_ODBC_FILES", std::nullopt);
  std::string disguised;  // unixODBC keeps the low byte of U+012F, which is a slash
  for (const char c : driver_) disguised += c == '/' ? "\u012f" : std::string(1, c);
  for (const auto& text :
       {"Driver=" + driver_, "driver = {" + driver_ + "}", "DSN=x;DRIVER=" + driver_,
        ";;Driver=" + driver_ + ";UID=a", "Description={a;b};Driver={" + driver_ + "}",
        "Description={a}};Driver=" + driver_, "Driver=" + disguised}) {
    const auto e = failure_of([&] { open_and_connect("odbc:" + text); });
    EXPECT_FALSE(was_loaded()) << text;
    EXPECT_EQ(e.code(), errc::invalid_argument) << text << ": " << e.what();
    EXPECT_THAT(e.what(), HasSubstr("HOLDFAST_ODBC_FILES=1")) << text;
    std::filesystem::remove(mark_);
  }
}

TEST_F(OdbcDriverFile, IsNotLoadedThroughAFileDsn) {
  const scoped_environment files("HOLDFAST_ODBC_FILES", std::nullopt);
  const auto source = directory_.path() / "evil.dsn";
  std::ofstream(source) << "[ODBC]\nDRIVER=" << driver_ << "\n";
  const auto e = failure_of([&] { open_and_connect("odbc:FILEDSN=" + source.string()); });
  EXPECT_FALSE(was_loaded());
  EXPECT_EQ(e.code(), errc::invalid_argument) << e.what();
  EXPECT_EQ(failure_of([&] {
              open_and_connect("odbc:DSN=x;SAVEFILE=" + (directory_.path() / "s").string());
            }).code(),
            errc::invalid_argument);
}

TEST_F(OdbcDriverFile, IsNotLoadedThroughAnAttributeOfADriver) {
  const scoped_environment files("HOLDFAST_ODBC_FILES", std::nullopt);
  const auto log = (directory_.path() / "log").string();
  for (const auto& text : {"LoadExt=" + driver_,
                           " loadext = {" + driver_ + "}",
                           std::string("LOADEXT=evil"),
                           "PLUGIN_DIR=" + log,
                           std::string("PluginDir={.}"),
                           std::string("Client=libfbclient.so"),
                           std::string("GSSClient=native"),
                           std::string("TranslationDLL=evil"),
                           std::string("Setup=evil"),
                           std::string("pqopt={sslkey=evil:key}"),
                           "DumpFile=" + log,
                           std::string("DumpFile=log"),
                           "TraceFile=" + log,
                           std::string("LogFile=log"),
                           std::string("Logdir=."),
                           std::string("SAVEFILE=saved"),
                           std::string("Debug=1"),
                           std::string("CommLog={1}"),
                           std::string("B3=1"),
                           std::string("Trace=Yes"),
                           std::string("CX=1fffffff"),
                           std::string("option={4}"),
                           "Description={a;b};LoadExt=" + driver_,
                           "Description={a;LoadExt=" + driver_,
                           "Unheard_Of=" + driver_,
                           std::string("Unheard_Of=../x")}) {
    const auto e = failure_of(
        [&] { open_and_connect("odbc:Driver=SQLite3;Database=" + log + ".db;" + text); });
    EXPECT_EQ(e.code(), errc::invalid_argument) << text << ": " << e.what();
    EXPECT_THAT(e.what(), HasSubstr("HOLDFAST_ODBC_FILES=1")) << text;
    EXPECT_FALSE(was_loaded()) << text;
    std::filesystem::remove(mark_);
  }
  // Paths of data, sockets and certificates, and logs that are off.
  (void)open(
      "odbc:Driver=SQLite3;Database=/var/lib/app/a.db;SSLCA={/etc/ca.pem};Server=/run/db;"
      "PWD={a;b=/c};UID={a/b};Debug=0;CommLog={0};LoadExt=");
}

// Shows that the tests above can fail.
TEST_F(OdbcDriverFile, IsLoadedThroughAnAttributeWhereTheEnvironmentAllowsIt) {
  const scoped_environment files("HOLDFAST_ODBC_FILES", "1");
  open_and_connect(odbc_sqlite((directory_.path() / "a.db").string()) + ";LoadExt=" + driver_);
  EXPECT_TRUE(was_loaded());
}

TEST_F(OdbcDriverFile, IsLoadedWhereTheEnvironmentAllowsIt) {
  const scoped_environment files("HOLDFAST_ODBC_FILES", "1");
  (void)failure_of([&] { open_and_connect("odbc:Driver=" + driver_); });
  EXPECT_TRUE(was_loaded());
}

TEST(OdbcConnectionString, IsRefusedIfItIsTooLong) {
  // 65,533 becomes -3 as a SQLSMALLINT, which is SQL_NTS: the driver manager would read past the
  // end of the string.
  for (const std::size_t length :
       {std::size_t{32'768}, std::size_t{65'533}, std::size_t{65'536 + 20}}) {
    std::string text = "DSN=nowhere;Description=";
    text.append(length - text.size(), 'x');
    const auto e = failure_of([&] {
      (void)open("odbc:" + text).store({.probe = start_probe::off, .start = start_mode::require});
    });
    EXPECT_EQ(e.code(), errc::too_large) << length << ": " << e.what();
    EXPECT_THAT(e.what(), HasSubstr("at most 32767"));
  }
  // The user and the password count.
  const std::string almost = "odbc:DSN=nowhere;Description=" + std::string(32'700, 'x');
  EXPECT_EQ(failure_of([&] { (void)open(almost, {.password = std::string(100, 'p')}); }).code(),
            errc::too_large);
  (void)open(almost, {.password = "p"});
}

// ---- PostgreSQL

/// libpq takes `sslkey=ENGINE:KEY` for a key in an engine of OpenSSL, and OpenSSL loads an engine
/// whose name is a path.
class PostgresKeyEngine : public LoadedLibrary {
 protected:
  [[nodiscard]] std::string url(const std::string& parameters) const {
    return "postgresql://app@127.0.0.1:" + std::to_string(server_.port()) +
           "/app?sslmode=require&sslcert=" + certificate_.file() + parameters;
  }

  certificate certificate_{""};
  /// Agrees to TLS, which is when libpq reads the key.
  recording_server server_{[](recording_server::client& client) {
    if (client.receive(8) != "\0\0\0\x08\x04\xd2\x16\x2f"s) return;
    client.send("S");
    (void)client.receive(1);
  }};
};

TEST_F(PostgresKeyEngine, IsNotLoaded) {
  const scoped_environment key("PGSSLKEY", std::nullopt);
  const auto services = directory_.path() / "services";
  std::ofstream(services) << "[evil]\nsslkey=" << driver_ << ":key\n";
  const scoped_environment service_file("PGSERVICEFILE", services.string());
  for (const auto& parameters : {"&sslkey=" + driver_ + ":key", "&sslkey=pkcs11:key"s,
                                 "&%73slkey=" + driver_ + "%3Akey", "&service=evil"s}) {
    const auto e = failure_of([&] { open_and_connect(url(parameters)); });
    EXPECT_FALSE(was_loaded()) << parameters;
    EXPECT_EQ(e.code(), errc::invalid_argument) << parameters << ": " << e.what();
    EXPECT_THAT(e.what(), HasSubstr("PGSSLKEY")) << parameters;
    std::filesystem::remove(mark_);
  }
}

// Shows that the test above can fail.
TEST_F(PostgresKeyEngine, IsLoadedWhereTheEnvironmentNamesIt) {
  const scoped_environment key("PGSSLKEY", driver_ + ":key");
  const auto e = failure_of([&] { open_and_connect(url("")); });
  EXPECT_TRUE(was_loaded()) << e.what();
}

// ---- schemes

TEST(Schemes, TheEnvironmentLimitsThem) {
  const temporary_directory directory;
  const auto file = directory.path() / "a.db";
  {
    const scoped_environment limited("HOLDFAST_SCHEMES", "postgresql, redis");
    for (const auto& url : {"sqlite://" + file.string(), std::string("odbc:DSN=x"),
                            std::string("mysql://h/d"), std::string("rediss://h"),
                            std::string("postgres://h/d"), std::string("no-url-hunter2")}) {
      const auto e = failure_of(
          [&] { (void)open(url).store({.create_schema = true, .start = start_mode::require}); });
      EXPECT_EQ(e.code(), errc::invalid_argument) << url;
      EXPECT_THAT(e.what(), HasSubstr("HOLDFAST_SCHEMES is postgresql, redis")) << url;
      EXPECT_THAT(e.what(), Not(HasSubstr("hunter2")));
    }
    EXPECT_FALSE(std::filesystem::exists(file));
    (void)open("postgresql://127.0.0.1:1/d");
    (void)open("redis://127.0.0.1:1");
    (void)open("memory:").store();
    EXPECT_EQ(failure_of([] { (void)redis::client("rediss://127.0.0.1:1"); }).code(),
              errc::invalid_argument)
        << "the client checks it as well";
  }
  {
    const scoped_environment empty("HOLDFAST_SCHEMES", "");
    EXPECT_THAT(failure_of([] { (void)open("postgresql://127.0.0.1:1/d"); }).what(),
                HasSubstr("unset it"));
  }
  const scoped_environment unlimited("HOLDFAST_SCHEMES", std::nullopt);
  (void)open("sqlite://" + file.string());
}

// ---- SQLite

/// Runs statements as an attacker who can write the file.
void prepare_file(const std::filesystem::path& file, const std::string& statements) {
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open(file.c_str(), &raw);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> handle(raw, &sqlite3_close);
  if (opened != SQLITE_OK ||
      sqlite3_exec(raw, statements.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    throw std::runtime_error(sqlite3_errmsg(raw));
}

TEST(SqliteFile, ATriggerInItCannotReachVirtualTables) {
  const temporary_directory directory;
  const auto file = directory.path() / "shared.db";
  const auto url = "sqlite://" + file.string();
  (void)open(url).store({.create_schema = true, .start = start_mode::require});
  // It would write file names of this machine, or the content of another virtual table, to the
  // file.
  prepare_file(
      file,
      "CREATE TABLE loot (content TEXT); CREATE TRIGGER spy AFTER INSERT ON FAILOVER_STORE "
      "BEGIN INSERT INTO loot SELECT file FROM "
      "pragma_database_list; END;");
  const auto now = system_clock()->now();
  const entry e1{.name = "n",
                 .key = "k",
                 .as_of = now,
                 .expire_on = now + 1h,
                 .payload = "{}",
                 .payload_class = "c"};
  const auto e = failure_of([&] { open(url).store({.probe = start_probe::off})->put(e1); });
  EXPECT_THAT(e.what(), HasSubstr("unsafe use of virtual table"));
  EXPECT_FALSE(e.transient());
  prepare_file(file, "DROP TRIGGER spy;");
  open(url).store()->put(e1);
}

TEST(SqliteFile, StatementsCannotRewriteItsSchema) {
  const temporary_directory directory;
  const auto connection = detail::sql::connect_sqlite({.file = directory.path() / "a.db"});
  connection->run("CREATE TABLE t (a INTEGER)");
  connection->run("PRAGMA writable_schema=ON");
  const auto e = failure_of([&] {
    connection->run("UPDATE sqlite_schema SET sql = 'CREATE TABLE t (a, b)' WHERE name = 't'");
  });
  EXPECT_THAT(e.what(), HasSubstr("may not be modified"));
}

TEST(SqliteFile, IsAPlainPath) {
  const temporary_directory directory;
  const auto file = directory.path() / "a.db";
  for (const auto& url : {"sqlite:file:" + file.string(),
                          "sqlite:file:" + file.string() + "%3Fmode=rwc", "sqlite:file%3Aa.db"s}) {
    const auto e = failure_of(
        [&] { (void)open(url).store({.create_schema = true, .start = start_mode::require}); });
    EXPECT_EQ(e.code(), errc::invalid_argument) << url << ": " << e.what();
    EXPECT_THAT(e.what(), HasSubstr("sqlite:./file:"));
  }
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(SqliteFile, IsPrivateWhenItIsCreatedThroughALink) {
  const temporary_directory directory;
  const auto target = directory.path() / "target.db";
  std::filesystem::create_symlink("second", directory.path() / "first");
  std::filesystem::create_symlink("target.db", directory.path() / "second");
  (void)open("sqlite://" + (directory.path() / "first").string())
      .store({.create_schema = true, .start = start_mode::require});
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(target).permissions(), perms::owner_read | perms::owner_write);
}

TEST(SqliteFile, AViewInItCannotTakeAllMemory) {
  const temporary_directory directory;
  const auto file = directory.path() / "bomb.db";
  const auto url = "sqlite://" + file.string();
  const auto view_of = [&](const std::string& payload) {
    std::filesystem::remove(file);
    prepare_file(
        file,
        "CREATE VIEW FAILOVER_STORE AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
        "FROM n WHERE i < 12) SELECT 'n' AS FAILOVER_NAME, 'k' || i AS FAILOVER_KEY, 1 AS AS_OF, "
        "9000000000000000 AS EXPIRE_ON, " +
            payload + " AS PAYLOAD, 'c' AS PAYLOAD_CLASS FROM n");
  };
  view_of("randomblob(900000000)");
  const auto one =
      failure_of([&] { (void)open(url).store({.probe = start_probe::off})->find("n", "k1"); });
  EXPECT_EQ(one.code(), errc::too_large) << one.what();
  view_of("zeroblob(100000000)");
  const auto many =
      failure_of([&] { (void)open(url).store({.probe = start_probe::off})->find_all("n", 1'000); });
  EXPECT_EQ(many.code(), errc::too_large) << many.what();
}

// ---- times

TEST(JavaPeerOnMariadb, TheZoneMustBeStated) {
  const auto& server = shared_server<mariadb_server>();
  const auto name = server.create_database("zone");
  const auto url = server.url(name);
  const auto e = failure_of([&] {
    (void)open(url).store(
        {.create_schema = true, .peer = peer::java, .start = start_mode::require});
  });
  EXPECT_EQ(e.code(), errc::invalid_argument) << e.what();
  EXPECT_EQ(e.path(), "zone");
  EXPECT_THAT(e.what(), HasSubstr("docs/java.md"));
  EXPECT_EQ(server.run("SHOW TABLES", name), "") << "refused before the tables are created";
  const auto other = failure_of([&] {
    (void)open(url).store({.create_schema = true,
                           .peer = peer::java,
                           .zone = "Europe/Paris",
                           .start = start_mode::require});
  });
  EXPECT_EQ(other.code(), errc::invalid_argument) << other.what();

  // A stated zone decides what the column holds.
  const auto store = open(url).store({.create_schema = true, .peer = peer::java, .zone = "UTC"});
  const timestamp noon = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + 12h;
  store->put({.name = "n",
              .key = "fe378bef-459d-3ba5-bfb1-b6c2c8654d4c",
              .as_of = noon,
              .expire_on = noon + 24h * 36'500,
              .payload = "{}",
              .payload_class = "com.acme.Country"});
  EXPECT_EQ(server.run("SELECT AS_OF FROM FAILOVER_STORE", name), "2026-03-01 12:00:00.000000\n");
  server.drop_database(name);
}

}  // namespace
}  // namespace holdfast::test
