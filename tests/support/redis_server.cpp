#include "support/redis_server.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace holdfast::test {
namespace {

constexpr auto redis_user = "redis";

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word == "''" ? "" : word);
  return words;
}

void openssl(std::vector<std::string> words) {
  words.insert(words.begin(), "openssl");
  const auto result = run_program({.argv = words});
  if (!result.status.success()) throw std::runtime_error("openssl: " + result.error);
}

}  // namespace

std::string redis_endpoint::unique_prefix(std::string_view purpose) const {
  static std::atomic<unsigned> count{0};
  const auto moment =
      std::chrono::steady_clock::now().time_since_epoch().count() / 1'000 % 1'000'000'000;
  return std::string(purpose) + '-' + std::to_string(::getpid()) + '-' + std::to_string(++count) +
         '-' + std::to_string(moment) + ':';
}

std::string redis_endpoint::run(const std::vector<std::string>& words) const {
  std::vector<std::string> argv{"redis-cli", "-h", "127.0.0.1", "-p", std::to_string(port()), "-e"};
  argv.insert(argv.end(), client_words_.begin(), client_words_.end());
  argv.insert(argv.end(), words.begin(), words.end());
  auto result = run_program({.argv = argv});
  if (!result.status.success())
    throw std::runtime_error("redis-cli " + words.front() + ": " + result.error + result.output);
  while (result.output.ends_with('\n')) result.output.pop_back();
  return std::move(result.output);
}

redis_server::redis_server(redis_options options)
    : redis_endpoint(0), options_(std::move(options)) {
  if (options_.directory.empty()) temporary_.emplace("redis", redis_user, medium::memory);
  const auto place = temporary_ ? temporary_->path() : options_.directory;

  prepare({.name = "Redis",
           .user = redis_user,
           .data = place,
           .log = place / "redis.log",
           .command =
               [this, place](std::uint16_t port) {
                 std::vector<std::string> argv{"redis-server",
                                               "--port",
                                               std::to_string(port),
                                               "--bind",
                                               "127.0.0.1",
                                               "--dir",
                                               place.string(),
                                               "--unixsocket",
                                               (place / "redis.sock").string(),
                                               "--unixsocketperm",
                                               "777",
                                               "--save",
                                               "",
                                               "--appendonly",
                                               options_.durable ? "yes" : "no",
                                               "--appendfsync",
                                               "always",
                                               "--shutdown-timeout",
                                               "0",
                                               "--enable-debug-command",
                                               "yes"};
                 for (const auto& setting : options_.settings) {
                   auto words = words_of(setting);
                   for (auto& word : words) {
                     if (word == "{port}") word = std::to_string(port);
                   }
                   words.front().insert(0, "--");
                   argv.insert(argv.end(), words.begin(), words.end());
                 }
                 return argv;
               },
           // The log is ours alone, so these words are our server's; a foreign one on the port
           // cannot say them.
           .ready =
               [](pid_t, const std::string& log) {
                 return log.find("Ready to accept connections") != std::string::npos;
               },
           .port_taken =
               [](const std::string& log) {
                 return log.find("Address already in use") != std::string::npos;
               },
           .before_start = {},
           .stop_signal = SIGTERM},
          [this](std::uint16_t port) { move_to(port); });
  start();
}

redis_server::~redis_server() { kill9(); }  // before the directory goes

certificates make_certificates(const std::filesystem::path& directory, const std::string& name) {
  const auto at = [&](const char* file) { return directory / file; };
  certificates made{at("ca.pem"), at("server.pem"), at("server.key"), at("client.pem"),
                    at("client.key")};
  openssl({"req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
           "/CN=holdfast test authority", "-keyout", at("ca.key").string(), "-out",
           made.authority.string()});
  const auto sign = [&](const std::filesystem::path& key, const std::filesystem::path& certificate,
                        const std::string& subject) {
    const auto request = directory / "request.pem";
    const auto extensions = directory / "extensions";
    openssl({"req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=" + subject, "-keyout",
             key.string(), "-out", request.string()});
    std::ofstream(extensions) << "subjectAltName=DNS:" << subject
                              << (subject == name ? ",IP:127.0.0.1\n" : "\n");
    openssl({"x509", "-req", "-days", "2", "-in", request.string(), "-CA", made.authority.string(),
             "-CAkey", at("ca.key").string(), "-CAcreateserial", "-extfile", extensions.string(),
             "-out", certificate.string()});
  };
  sign(made.server_key, made.server, name);
  sign(made.client_key, made.client, "holdfast client");
  using std::filesystem::perms;
  for (const auto& each : std::filesystem::directory_iterator(directory))
    std::filesystem::permissions(each.path(), perms::owner_read | perms::owner_write |
                                                  perms::group_read | perms::others_read);
  return made;
}

}  // namespace holdfast::test
