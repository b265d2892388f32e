#include "commands/store/entry_import.hpp"

#include <holdfast/error.hpp>

#include "commands/store/entry_text.hpp"
#include "terminal/progress.hpp"
#include "terminal/text.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

class importer {
 public:
  importer(console& io, store& entries, const stop_signals& stop, std::uint64_t total)
      : entries_(entries), stop_(stop), total_(total), progress_(io, "imported", false) {}

  import_result run(const input_file& file) {
    line_reader lines(file, std::size_t{64} << 20U, [&] { wait_for_input(file); });
    std::string_view line;
    for (auto result = lines.next(line); result != line_reader::result::end;
         result = lines.next(line)) {
      ++line_number_;
      try {
        if (result == line_reader::result::overlong)
          throw error(errc::too_large, "the line is longer than 64 MiB");
        if (!line.empty()) batch_.push_back(read_(line));
      } catch (const error& e) {
        write_batch();
        progress_.clear();
        throw error(e.code(),
                    file.name() + ", line " + std::to_string(line_number_) + ": " + e.what());
      }
      if (batch_.size() < batch_size) continue;
      write_batch();
      if (stop_.wait(0)) end_early();
    }
    write_batch();
    progress_.clear();
    return result_;
  }

 private:
  static constexpr std::size_t batch_size = 500;

  /// Signals are blocked, so that a batch is not cut. Without this a wait for a terminal or a pipe
  /// could not be ended by them.
  void wait_for_input(const input_file& file) {
    while (!file.ready()) {
      if (stop_.wait(20)) end_early();
    }
  }

  [[noreturn]] void end_early() {
    write_batch();
    progress_.clear();
    throw stopped("imported", result_.read, total_);
  }

  void write_batch() {
    try {
      put_entries(entries_, batch_, result_);
    } catch (const error& e) {
      progress_.clear();
      throw error(e.code(), "lines " + std::to_string(first_line_) + " to " +
                                std::to_string(line_number_) + ": " + e.what());
    }
    batch_.clear();
    first_line_ = line_number_ + 1;
    progress_.update(result_.read, total_);
  }

  store& entries_;
  const stop_signals& stop_;
  std::uint64_t total_;
  progress progress_;
  entry_reader read_{};
  std::vector<entry> batch_{};
  std::uint64_t line_number_ = 0;
  std::uint64_t first_line_ = 1;  // of batch_
  import_result result_{};
};

}  // namespace

void put_entries(store& target, std::span<const entry> batch, import_result& result) {
  const timestamp now = system_clock()->now();
  target.put(batch);
  // A put does not tell what it skipped: compares the entries with those that are stored now.
  std::map<std::string_view, std::vector<const entry*>> by_name;
  for (const auto& e : batch) {
    ++result.read;
    if (e.expire_on < now) ++result.expired;
    else by_name[e.name].push_back(&e);
  }
  for (const auto& [name, requested] : by_name) {
    std::vector<std::string> keys;
    keys.reserve(requested.size());
    for (const auto* e : requested) keys.push_back(e->key);
    const auto stored = target.find_many(name, keys);
    for (std::size_t i = 0; i < requested.size(); ++i) {
      const auto& current = stored[i];
      if (current && current->as_of > requested[i]->as_of) ++result.older;
      else ++result.written;
    }
  }
}

std::string to_text(const import_result& result) {
  return "written " + grouped(result.written) + ", skipped " +
         grouped(result.expired + result.older) + " (expired " + grouped(result.expired) +
         ", older " + grouped(result.older) + ")";
}

std::string to_json(const import_result& result) {
  return "{\"read\":" + std::to_string(result.read) +
         ",\"written\":" + std::to_string(result.written) +
         ",\"expired\":" + std::to_string(result.expired) +
         ",\"older\":" + std::to_string(result.older) + "}";
}

import_result import_entries(console& io, store& entries, const input_file& file,
                             const stop_signals& stop) {
  return importer(io, entries, stop, count_lines(file)).run(file);
}

}  // namespace holdfast::cli
