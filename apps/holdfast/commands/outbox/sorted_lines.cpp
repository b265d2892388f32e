#include "commands/outbox/sorted_lines.hpp"

#include <holdfast/error.hpp>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <queue>
#include <system_error>
#include <utility>

namespace holdfast::cli {

namespace {

struct line_header {
  std::uint64_t lane = 0;
  std::int64_t sequence = 0;
  std::uint64_t size = 0;
  std::uint8_t group = 0;
};

[[noreturn]] void fail(const char* action) {
  throw error(errc::unavailable, std::string("a temporary file cannot be ") + action + ": " +
                                     std::error_code(errno, std::generic_category()).message() +
                                     "; free space there, or set TMPDIR to another directory");
}

std::FILE* open_temporary_file() {
  std::error_code ignored;
  std::string name =
      (std::filesystem::temp_directory_path(ignored) / "holdfast-export-XXXXXX").string();
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);  // mode 0600
  if (descriptor < 0) fail("created");
  (void)::unlink(name.c_str());
  std::FILE* file = ::fdopen(descriptor, "w+b");
  if (file != nullptr) return file;
  ::close(descriptor);
  fail("opened");
}

}  // namespace

void sorted_lines::add(place at, std::string text) {
  used_ += text.size() + sizeof(line);
  lines_.push_back({.at = at, .text = std::move(text)});
  if (used_ > memory_) spill();
}

void sorted_lines::spill() {
  std::ranges::sort(lines_, {}, &line::at);
  run file(open_temporary_file());
  for (const auto& [at, text] : lines_) {
    const line_header header{.lane = std::get<1>(at),
                             .sequence = std::get<2>(at),
                             .size = text.size(),
                             .group = std::get<0>(at)};
    if (std::fwrite(&header, sizeof(header), 1, file.get()) != 1 ||
        std::fwrite(text.data(), 1, text.size(), file.get()) != text.size())
      fail("written");
  }
  if (std::fflush(file.get()) != 0) fail("written");
  std::rewind(file.get());
  runs_.push_back(std::move(file));
  lines_.clear();
  used_ = 0;
}

bool sorted_lines::read(std::FILE* file, line& next) {
  line_header header;
  if (std::fread(&header, sizeof(header), 1, file) != 1) {
    if (std::ferror(file) != 0) fail("read");
    return false;
  }
  next.at = {header.group, header.lane, header.sequence};
  next.text.resize(header.size);
  if (std::fread(next.text.data(), 1, header.size, file) != header.size) fail("read");
  return true;
}

void sorted_lines::write_all(const std::function<void(const std::string&)>& write) {
  if (!runs_.empty() && !lines_.empty()) spill();
  if (runs_.empty()) {
    std::ranges::sort(lines_, {}, &line::at);
    for (const auto& each : lines_) write(each.text);
    return;
  }
  std::vector<line> heads(runs_.size());
  const auto later = [&heads](std::size_t a, std::size_t b) { return heads[a].at > heads[b].at; };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> next(later);
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (read(runs_[i].get(), heads[i])) next.push(i);
  }
  while (!next.empty()) {
    const std::size_t i = next.top();
    next.pop();
    write(heads[i].text);
    if (read(runs_[i].get(), heads[i])) next.push(i);
  }
}

}  // namespace holdfast::cli
