// holdfast store export and import.

#include <holdfast/database.hpp>

#include "commands/groups.hpp"
#include "commands/store/entry_pages.hpp"
#include "commands/store/entry_text.hpp"
#include "commands/store/location.hpp"
#include "terminal/input.hpp"
#include "terminal/progress.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

void add_export(command group) {
  command cmd = group.add("export", "Print the entries of a name as JSON Lines");
  cmd.examples("holdfast store export --store sqlite:answers.db --name country > country.jsonl");
  const store_location location(cmd);
  const option name = cmd.value("--name", "N", "Effective name").required();
  cmd.run([=](console& io) {
    const auto entries = location.open(io);
    progress shown(io, "exported", true);
    std::uint64_t count = 0;
    const auto unreadable = for_each_entry(*entries, name.text(), UINT64_MAX, [&](const entry& e) {
      io.out << entry_json(e) << "\n";
      shown.update(++count);
    });
    shown.clear();
    if (unreadable > 0)
      io.warn(std::to_string(unreadable) + " rows cannot be read and were skipped");
    return unreadable > 0 ? exit_negative : exit_ok;
  });
}

/// Reads entries line by line and writes them in batches.
class importer {
 public:
  importer(console& io, store& entries) : entries_(entries), progress_(io, "imported", false) {}

  /// Throws an error with the number of the line, after it has written the lines before.
  void run(const input_file& file) {
    line_reader lines(file, std::size_t{64} << 20U, [] {});
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
        throw error(e.code(), "line " + std::to_string(line_number_) + ": " + e.what());
      }
      if (batch_.size() == 500) write_batch();
    }
    write_batch();
    progress_.clear();
  }

 private:
  void write_batch() {
    try {
      entries_.put(batch_);
    } catch (const error& e) {
      progress_.clear();
      throw error(e.code(), "lines " + std::to_string(first_line_) + " to " +
                                std::to_string(line_number_) + ": " + e.what());
    }
    batch_.clear();
    first_line_ = line_number_ + 1;
    progress_.update(line_number_);
  }

  store& entries_;
  progress progress_;
  entry_reader read_{};
  std::vector<entry> batch_{};
  std::uint64_t line_number_ = 0;
  std::uint64_t first_line_ = 1;  // of batch_
};

void add_import(command group) {
  command cmd = group.add("import", "Write entries from JSON Lines");
  cmd.about(
      "Reads the output of export. Skips entries that have expired, or are older than the stored "
      "ones. Stops at a line that is not an entry, after it has written the lines before.");
  cmd.examples("holdfast store import --store postgresql://localhost/app country.jsonl");
  const store_location location(cmd);
  const option file = cmd.positional("FILE", "File to read; - or nothing: standard input").file();
  cmd.run([=](console& io) {
    const auto entries = location.open(io);
    const input_file lines(file.text("-"));
    importer(io, *entries).run(lines);
    return exit_ok;
  });
}

}  // namespace

void add_transfer_commands(command group) {
  add_export(group);
  add_import(group);
}

}  // namespace holdfast::cli
