#include "support/process_state.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace holdfast::test {
namespace {

struct stat_line {
  char state = '?';
  pid_t parent = 0;
  std::uint64_t started = 0;
};

std::optional<stat_line> read_stat(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // The second field is the program's name in parentheses, which may itself hold spaces and
  // parentheses.
  const auto end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(end_of_name + 1));
  rest.imbue(std::locale::classic());
  stat_line result;
  rest >> result.state >> result.parent;
  std::string skipped;
  for (int field = 5; field < 22; ++field) rest >> skipped;
  rest >> result.started;
  if (!rest) return std::nullopt;
  return result;
}

bool is_alive(char state) { return state != 'Z' && state != 'X' && state != 'x'; }

}  // namespace

std::optional<char> process_state(pid_t pid) {
  const auto line = read_stat(pid);
  return line ? std::optional(line->state) : std::nullopt;
}

bool process_alive(pid_t pid) {
  const auto line = read_stat(pid);
  return line && is_alive(line->state);
}

bool process_alive(const process_identity& process) {
  const auto line = read_stat(process.pid);
  return line && is_alive(line->state) && line->started == process.started;
}

std::optional<process_identity> identify(pid_t pid) {
  const auto line = read_stat(pid);
  if (!line) return std::nullopt;
  return process_identity{.pid = pid, .started = line->started};
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> result;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", problem)) {
    const std::string name = entry.path().filename();
    pid_t child = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), child);
    if (bad != std::errc{} || end != name.data() + name.size()) continue;
    const auto line = read_stat(child);
    if (line && line->parent == pid) result.push_back(child);
  }
  return result;
}

}  // namespace holdfast::test
