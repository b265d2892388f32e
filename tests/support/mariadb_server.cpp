#include "support/mariadb_server.hpp"

#include "support/data_template.hpp"

#include <fstream>
#include <stdexcept>

namespace holdfast::test {
namespace {

void require_success(const program_result& result, const std::string& what) {
  if (!result.status.success())
    throw std::runtime_error(what + ": " + result.status.describe() + ": " + result.error +
                             result.output);
}

// The redo log is made small: it is copied at every start.
const std::vector<std::string> sizes{"--innodb-log-file-size=16M", "--innodb-buffer-pool-size=64M"};

void make_template(const std::filesystem::path& data) {
  const auto place = data.parent_path();
  std::vector<std::string> install{"mariadb-install-db",
                                   "--no-defaults",
                                   "--datadir=" + data.string(),
                                   "--auth-root-authentication-method=normal",
                                   "--skip-test-db",
                                   "--debug-no-sync"};
  install.insert(install.end(), sizes.begin(), sizes.end());
  require_success(run_program({.argv = install,
                               .environment = {"TMPDIR=" + place.string()},
                               .directory = place,
                               .user = mariadb_user}),
                  "mariadb-install-db");

  const auto statements = place / "statements";
  std::ofstream out(statements);
  // Bootstrap mode leaves the grant tables unread until it is told to read them. One statement a
  // line.
  out << "FLUSH PRIVILEGES;\n"
         "ALTER USER root@localhost IDENTIFIED BY 'secret';\n"
         "DELETE FROM mysql.global_priv WHERE User = 'root' AND Host <> 'localhost';\n"
         "FLUSH PRIVILEGES;\n"
         "CREATE USER admin@'127.0.0.1' IDENTIFIED BY 'secret';\n"
         "GRANT ALL ON *.* TO admin@'127.0.0.1' WITH GRANT OPTION;\n"
         "CREATE USER holdfast@'127.0.0.1' IDENTIFIED BY 'secret';\n"
         "GRANT ALL ON `holdfast`.* TO holdfast@'127.0.0.1';\n"
         "GRANT ALL ON `holdfast\\_%`.* TO holdfast@'127.0.0.1';\n"
         "CREATE DATABASE holdfast CHARACTER SET utf8mb4;\n";
  if (!out.flush()) throw std::runtime_error("cannot write " + statements.string());
  std::vector<std::string> bootstrap{"mariadbd", "--no-defaults", "--datadir=" + data.string(),
                                     "--bootstrap", "--debug-no-sync"};
  bootstrap.insert(bootstrap.end(), sizes.begin(), sizes.end());
  const auto result = run_program({.argv = bootstrap,
                                   .environment = {"TMPDIR=" + place.string()},
                                   .directory = place,
                                   .user = mariadb_user,
                                   .input = statements});
  require_success(result, "mariadbd --bootstrap");
  if (result.error.find("ERROR") != std::string::npos)
    throw std::runtime_error("mariadbd --bootstrap: " + result.error);
}

}  // namespace

const std::vector<std::string>& mariadb_data_settings() { return sizes; }

void make_mariadb_data(const std::filesystem::path& target) {
  copy_data_template("mariadb-1", mariadb_user, target, make_template);
}

std::string mariadb_endpoint::run_client(const std::string& sql,
                                         const std::string& database) const {
  auto result =
      run_program({.argv = {"mariadb", "--no-defaults", "--protocol=tcp", "-h", "127.0.0.1", "-P",
                            std::to_string(port()), "-u", "admin", "--connect-timeout=10",
                            "--default-character-set=utf8mb4", "-N", "-B", "-e", sql, database},
                   .environment = {"MYSQL_PWD=secret"}});
  require_success(result, "mariadb");
  return std::move(result.output);
}

void mariadb_endpoint::make_database(const std::string& name) const {
  run_client("CREATE DATABASE `" + name + "` CHARACTER SET utf8mb4", "mysql");
}

void mariadb_endpoint::remove_database(const std::string& name) const {
  run_client("DROP DATABASE IF EXISTS `" + name + "`", "mysql");
}

mariadb_server::mariadb_server(server_options options)
    : mariadb_endpoint(0), options_(std::move(options)) {
  if (options_.directory.empty()) temporary_.emplace("mariadb", mariadb_user, medium::memory);
  const auto place = temporary_ ? temporary_->path() : options_.directory;
  const auto data = place / "data";
  make_mariadb_data(data);

  prepare(
      {.name = "MariaDB",
       .user = mariadb_user,
       .data = data,
       .log = place / "mariadb.log",
       .command =
           [this, data](std::uint16_t port) {
             std::vector<std::string> argv{"mariadbd", "--no-defaults",
                                           "--datadir=" + data.string(), "--bind-address=127.0.0.1",
                                           "--port=" + std::to_string(port),
                                           "--socket=" + (data / "m.sock").string(),
                                           "--pid-file=" + (data / "m.pid").string(),
                                           // TMPDIR may be closed to its user
                                           "--tmpdir=" + data.string(), "--skip-name-resolve",
                                           "--skip-log-bin", "--character-set-server=utf8mb4"};
             argv.insert(argv.end(), sizes.begin(), sizes.end());
             if (!options_.durable)
               argv.insert(argv.end(), {"--innodb-flush-log-at-trx-commit=0", "--debug-no-sync"});
             for (const auto& setting : options_.settings) argv.push_back("--" + setting);
             return argv;
           },
       // The log is ours alone, so these words are our server's; a foreign one on the port
       // cannot say them.
       .ready =
           [](pid_t, const std::string& log) {
             return log.find("ready for connections") != std::string::npos;
           },
       .port_taken =
           [](const std::string& log) {
             return log.find("Can't start server: Bind on TCP/IP port") != std::string::npos;
           },
       .before_start = {},
       .stop_signal = SIGTERM},
      [this](std::uint16_t port) { move_to(port); });
  start();
}

mariadb_server::~mariadb_server() { kill9(); }  // before the directory goes

}  // namespace holdfast::test
