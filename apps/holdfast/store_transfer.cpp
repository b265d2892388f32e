#include <holdfast/database.hpp>

#include "entry_pages.hpp"
#include "entry_text.hpp"
#include "groups.hpp"
#include "input.hpp"
#include "progress.hpp"
#include "store_place.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

void add_export(command group) {
  command at = group.add("export", "Print the entries of a name as JSON Lines");
  at.examples("holdfast store export --store sqlite:answers.db --name country > country.jsonl");
  const store_place place(at);
  const option name = at.value("--name", "N", "The effective name").required();
  at.run([=](console& io) {
    const auto open = place.open(io);
    progress shown(io, "exported", true);
    std::uint64_t count = 0;
    const auto unreadable = each_entry(*open, name.text(), UINT64_MAX, [&](const entry& each) {
      io.out << entry_json(each) << "\n";
      shown.at(++count);
    });
    shown.end();
    if (unreadable > 0) io.warn(std::to_string(unreadable) + " rows cannot be read and were left out");
    return unreadable > 0 ? exit_no : exit_fine;
  });
}

void add_import(command group) {
  command at = group.add("import", "Write entries from JSON Lines");
  at.about(
      "Reads what export prints. An entry that is older than what is there, or has expired, is left out, as always. A line that is\n"
      "not an entry stops the import; what came before it is written.");
  at.examples("holdfast store import --store postgresql://localhost/app country.jsonl");
  const store_place place(at);
  const option file = at.positional("FILE", "Where to read; - or nothing is standard input").file();
  at.run([=](console& io) {
    const auto open = place.open(io);
    const input_file from(file.text("-"));
    line_reader lines(from, std::size_t{64} << 20U, [] {});
    entry_reader read;
    std::vector<entry> batch;
    std::uint64_t number = 0;
    std::uint64_t first = 1;  // of the batch
    progress shown(io, "imported", false);
    const auto flush = [&] {
      try {
        open->put(batch);
      } catch (const error& e) {
        shown.end();
        throw error(e.code(), "lines " + std::to_string(first) + " to " + std::to_string(number) + ": " + e.what());
      }
      batch.clear();
      first = number + 1;
      shown.at(number);
    };
    std::string_view line;
    for (auto found = lines.next(line); found != line_reader::found::end; found = lines.next(line)) {
      ++number;
      try {
        if (found == line_reader::found::overlong) throw error(errc::too_large, "the line is longer than 64 MiB");
        if (!line.empty()) batch.push_back(read(line));
      } catch (const error& e) {
        flush();
        shown.end();
        throw error(e.code(), "line " + std::to_string(number) + ": " + e.what());
      }
      if (batch.size() == 500) flush();
    }
    flush();
    shown.end();
    return exit_fine;
  });
}

}  // namespace

void add_transfer_commands(command group) {
  add_export(group);
  add_import(group);
}

}  // namespace holdfast::cli
