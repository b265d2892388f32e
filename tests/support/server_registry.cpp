#include "support/server_registry.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace holdfast::test {
namespace {

// Whole or not at all: a reader never sees half a file.
void replace_file(const std::filesystem::path& file, const std::string& text) {
  const auto unfinished = file.string() + ".new";
  std::ofstream out(unfinished, std::ios::trunc);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + unfinished);
  std::filesystem::rename(unfinished, file);
}

std::string to_text(const process_identity& process) {
  return std::to_string(process.pid) + '-' + std::to_string(process.started);
}

std::optional<process_identity> from_text(const std::string& text) {
  const auto dash = text.find('-');
  if (dash == std::string::npos) return std::nullopt;
  try {
    return process_identity{.pid = static_cast<pid_t>(std::stol(text.substr(0, dash))),
                            .started = std::stoull(text.substr(dash + 1))};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<process_identity> server_registry::keeper() const {
  std::ifstream in(directory_ / "keeper");
  std::string text;
  if (!(in >> text)) return std::nullopt;
  auto found = from_text(text);
  if (found && !process_alive(*found)) return std::nullopt;
  return found;
}

std::map<std::string, std::uint16_t> server_registry::servers() const {
  std::map<std::string, std::uint16_t> result;
  if (!keeper()) return result;
  std::ifstream in(directory_ / "servers");
  std::string kind;
  std::string port;
  while (in >> kind >> port) result.emplace(kind, static_cast<std::uint16_t>(std::stoul(port)));
  return result;
}

void server_registry::set_keeper(const process_identity& keeper) {
  replace_file(directory_ / "keeper", to_text(keeper));
}

void server_registry::publish(const std::map<std::string, std::uint16_t>& servers) {
  std::string text;
  for (const auto& [kind, port] : servers) text += kind + ' ' + std::to_string(port) + '\n';
  replace_file(directory_ / "servers", text);
}

void server_registry::unpublish() {
  std::error_code ignored;
  std::filesystem::remove(directory_ / "servers", ignored);
  std::filesystem::remove(directory_ / "keeper", ignored);
}

void server_registry::add_user(const process_identity& user) {
  std::filesystem::create_directories(directory_ / "users");
  replace_file(directory_ / "users" / to_text(user), "");
}

void server_registry::remove_user(const process_identity& user) {
  std::error_code ignored;
  std::filesystem::remove(directory_ / "users" / to_text(user), ignored);
}

bool server_registry::in_use() {
  std::error_code problem;
  bool found = false;
  for (const auto& entry : std::filesystem::directory_iterator(directory_ / "users", problem)) {
    const auto user = from_text(entry.path().filename());
    if (user && process_alive(*user)) {
      found = true;
    } else {
      std::filesystem::remove(entry.path(), problem);
    }
  }
  return found;
}

registry_lock::registry_lock(const server_registry& registry, bool wait) {
  const auto file = registry.directory() / "lock";
  file_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) throw std::system_error(errno, std::generic_category(), file);
  int result = 0;
  do result = ::flock(file_, wait ? LOCK_EX : LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  held_ = result == 0;
}

registry_lock::~registry_lock() { ::close(file_); }

}  // namespace holdfast::test
