#include "commands/backup/backup_file.hpp"

#include <holdfast/error.hpp>

#include "terminal/input.hpp"
#include "terminal/json_fields.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::cli {

namespace {

/// The beginning of the first line of each backup.
constexpr std::string_view backup_begin = R"({"kind":"backup",)";

/// A backup takes the place of an earlier one, and of nothing else: a mistyped name could be that
/// of the database.
void refuse_other_file(const std::string& name) {
  std::ifstream existing(name, std::ios::binary);
  if (!existing) return;
  std::string text(backup_begin.size(), '\0');
  existing.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(existing.gcount()));
  if (!text.empty() && text != backup_begin)
    throw error(errc::invalid_argument,
                "'" + name + "' exists and is not a backup; choose another name");
}

}  // namespace

backup_file::backup_file(std::string name)
    : name_(std::move(name)), partial_name_(name_ + ".partial") {
  refuse_other_file(name_);
  descriptor_ =
      ::open(partial_name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor_ < 0) fail("create");
  output_ = std::make_unique<output>(descriptor_);
}

backup_file::~backup_file() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(partial_name_.c_str());
}

void backup_file::write(const std::string& line) { *output_ << line << "\n"; }

void backup_file::complete() {
  output_->flush();
  if (::fsync(descriptor_) != 0) fail("sync");
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("close");
  if (std::rename(partial_name_.c_str(), name_.c_str()) != 0) fail("rename");
}

void backup_file::fail(const std::string& action) const {
  const int reason = errno;
  throw error(errc::unavailable, "cannot " + action + " '" + partial_name_ +
                                     "': " + std::generic_category().message(reason) +
                                     "; check its directory and the free space");
}

backup_header check_backup(const std::string& name) {
  const input_file file(name);
  line_reader lines(file, std::size_t{64} << 20U, [] {});
  simdjson::dom::parser parser;
  const auto refuse = [&](const std::string& reason) {
    throw error(errc::malformed, "'" + name + "' " + reason);
  };
  backup_header header;
  std::uint64_t count = 0;
  bool complete = false;
  std::string_view line;
  for (auto result = lines.next(line); result != line_reader::result::end;
       result = lines.next(line), ++count) {
    if (complete) refuse("goes on after its last line; take another backup");
    if (count != 0 && !line.starts_with("{\"kind\":\"end\"")) continue;
    if (count == 0 && !line.starts_with("{"))
      refuse("is not a backup; give a file that holdfast backup wrote");
    const auto fields = json_fields::of_line(parser, line);
    if (count != 0) {
      complete = fields.integer("lines") >= 0 &&
                 static_cast<std::uint64_t>(fields.integer("lines")) + 1 == count;
      if (!complete) refuse("lacks lines; take another backup");
      continue;
    }
    if (fields.optional_text("kind") != "backup")
      refuse("is not a backup; give a file that holdfast backup wrote");
    if (fields.integer("format") != 1)
      throw error(errc::unsupported_type,
                  "'" + name + "' was written by a later version of Holdfast; update the program");
    header.lanes = static_cast<std::uint64_t>(fields.integer("lanes"));
  }
  if (!complete) refuse("is not a complete backup: its last line is missing; take another one");
  return header;
}

}  // namespace holdfast::cli
