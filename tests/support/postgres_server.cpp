#include "support/postgres_server.hpp"

#include "support/data_template.hpp"

#include <sys/ipc.h>
#include <sys/shm.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <vector>

namespace holdfast::test {
namespace {

constexpr auto postgres_user = "postgres";  // initdb refuses root

std::filesystem::path find_programs() {
  if (const char* place = std::getenv("HOLDFAST_POSTGRES_BIN")) return place;
  std::vector<int> versions;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", missing)) {
    if (std::filesystem::exists(entry.path() / "bin" / "initdb"))
      versions.push_back(std::atoi(entry.path().filename().c_str()));
  }
  if (versions.empty())
    throw std::runtime_error(
        "no PostgreSQL below /usr/lib/postgresql: scripts/packages says what the tests need");
  return "/usr/lib/postgresql/" +
         std::to_string(*std::max_element(versions.begin(), versions.end())) + "/bin";
}

const std::filesystem::path& programs() {
  static const auto place = find_programs();
  return place;
}

void expect_success(const program_result& result, const std::string& what) {
  if (!result.status.success())
    throw std::runtime_error(what + ": " + result.status.describe() + ": " + result.error +
                             result.output);
}

void write_file(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

void make_postgres_data(const std::filesystem::path& data) {
  const auto place = data.parent_path();
  const auto password = place / "password";
  write_file(password, "secret\n");
  expect_success(run_program({.argv = {programs() / "initdb", "-D", data, "-U", postgres_user,
                                       "--pwfile=" + password.string(), "--auth=scram-sha-256",
                                       "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"},
                              .directory = place,
                              .user = postgres_user}),
                 "initdb");
  // Single-user mode: no port is needed. One statement a line.
  const auto statements = place / "statements";
  write_file(statements,
             "CREATE ROLE holdfast LOGIN PASSWORD 'secret'\n"
             "CREATE DATABASE holdfast OWNER holdfast\n");
  const auto result = run_program(
      {.argv = {programs() / "postgres", "--single", "-D", data, "-c", "fsync=off", "postgres"},
       .directory = place,
       .user = postgres_user,
       .input = statements});
  expect_success(result, "postgres --single");
  if (result.error.find("ERROR") != std::string::npos)
    throw std::runtime_error("postgres --single: " + result.error);
}

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<std::string> result;
  for (std::string line; std::getline(in, line);) result.push_back(line);
  return result;
}

// postmaster.pid: 1 the process, 7 key and id of its shared memory, 8 its state.
bool is_ready(const std::filesystem::path& data, pid_t pid) {
  const auto lines = lines_of(data / "postmaster.pid");
  return lines.size() >= 8 && std::atoi(lines[0].c_str()) == pid &&
         (lines[7].starts_with("ready") || lines[7].starts_with("standby"));
}

// After a kill -9 the server leaves its file, and a small segment of shared memory of which a
// machine has only so many.
void tidy_up(const std::filesystem::path& data) {
  const auto lines = lines_of(data / "postmaster.pid");
  if (lines.size() >= 7) {
    const auto space = lines[6].find_last_of(' ');
    shmid_ds segment{};
    const int id = space == std::string::npos ? -1 : std::atoi(lines[6].c_str() + space);
    if (id >= 0 && ::shmctl(id, IPC_STAT, &segment) == 0 && segment.shm_nattch == 0)
      ::shmctl(id, IPC_RMID, nullptr);
  }
  std::error_code ignored;
  std::filesystem::remove(data / "postmaster.pid", ignored);
}

}  // namespace

std::string postgres_endpoint::run_client(const std::string& sql,
                                          const std::string& database) const {
  auto result =
      run_program({.argv = {programs() / "psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v",
                            "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", std::to_string(port()),
                            "-U", postgres_user, "-d", database, "-c", sql},
                   .environment = {"PGPASSWORD=secret", "PGCONNECT_TIMEOUT=10", "PGOPTIONS",
                                   "PGSERVICE", "PGHOSTADDR"}});
  expect_success(result, "psql");
  return std::move(result.output);
}

void postgres_endpoint::make_database(const std::string& name) const {
  run_client("CREATE DATABASE \"" + name + "\" OWNER holdfast", "postgres");
}

void postgres_endpoint::remove_database(const std::string& name) const {
  run_client("DROP DATABASE IF EXISTS \"" + name + "\" WITH (FORCE)", "postgres");
}

postgres_server::postgres_server(server_options options)
    : postgres_endpoint(0), options_(std::move(options)) {
  prepare_and_start([](const std::filesystem::path& data) {
    const auto version = programs().parent_path().filename().string();
    copy_data_template("postgresql-" + version + "-1", postgres_user, data, make_postgres_data);
  });
}

postgres_server::postgres_server(const postgres_endpoint& primary, std::uint16_t link,
                                 server_options options)
    : postgres_endpoint(0), options_(std::move(options)) {
  const auto way = [](std::uint16_t port) {
    return "host=127.0.0.1 user=postgres password=secret port=" + std::to_string(port);
  };
  options_.settings.push_back("primary_conninfo=" + way(link));
  prepare_and_start([&](const std::filesystem::path& data) {
    expect_success(
        run_program({.argv = {programs() / "pg_basebackup", "-D", data, "-R", "-X", "stream", "-c",
                              "fast", "--no-sync", "-d", way(primary.port())},
                     .directory = data.parent_path(),
                     .user = postgres_user}),
        "pg_basebackup");
  });
}

void postgres_server::promote() const {
  if (run("SELECT pg_promote(true, 60)", "postgres") != "t\n")
    throw std::runtime_error("PostgreSQL: the standby was not promoted in time");
}

void postgres_server::prepare_and_start(
    const std::function<void(const std::filesystem::path& data)>& fill) {
  if (options_.directory.empty()) temporary_.emplace("postgres", postgres_user, medium::memory);
  const auto place = temporary_ ? temporary_->path() : options_.directory;
  const auto data = place / "data";
  fill(data);

  prepare({.name = "PostgreSQL",
           .user = postgres_user,
           .data = data,
           .log = place / "postgres.log",
           .command =
               [this, data](std::uint16_t port) {
                 std::vector<std::string> argv{programs() / "postgres", "-D", data, "-p",
                                               std::to_string(port)};
                 std::vector<std::string> settings{"listen_addresses=127.0.0.1",
                                                   "unix_socket_directories=", "log_timezone=UTC",
                                                   "timezone=UTC"};
                 if (!options_.durable)
                   settings.insert(settings.end(),
                                   {"fsync=off", "synchronous_commit=off", "full_page_writes=off"});
                 settings.insert(settings.end(), options_.settings.begin(),
                                 options_.settings.end());
                 for (const auto& setting : settings) argv.insert(argv.end(), {"-c", setting});
                 return argv;
               },
           .ready = [data](pid_t pid, const std::string&) { return is_ready(data, pid); },
           .port_taken =
               [](const std::string& log) {
                 return log.find("could not create any TCP/IP sockets") != std::string::npos;
               },
           .before_start = [data] { tidy_up(data); },
           .stop_signal = SIGINT},  // "fast": does not wait for clients to leave
          [this](std::uint16_t port) { move_to(port); });
  start();
}

postgres_server::~postgres_server() {
  kill9();
  tidy_up(data_directory());
}

}  // namespace holdfast::test
