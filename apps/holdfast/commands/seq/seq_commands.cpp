// holdfast seq next, peek, list, ensure, reset, define, schema and doctor.

#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "commands/groups.hpp"
#include "commands/schema_dialect.hpp"
#include "commands/seq/location.hpp"
#include "terminal/table.hpp"
#include "terminal/text.hpp"
#include "terminal/time_text.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::cli {

namespace {

using namespace std::chrono_literals;

/// 20, or the number of ids if the sequence has fewer.
std::uint64_t default_block(const sequence_options& options) {
  const bool up = options.increment > 0;
  const std::int64_t low = up ? options.start : options.min;
  const std::int64_t high = up ? options.max : options.start;
  if (options.increment == 0 || low > high) return 20;  // the library refuses these options
  const auto step = up ? static_cast<std::uint64_t>(options.increment)
                       : 0 - static_cast<std::uint64_t>(options.increment);
  const std::uint64_t last =
      (static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low)) / step;
  return last < 20 ? last + 1 : 20;
}

/// Prints the last allocated id. Before the first one: null in JSON, and nothing in text.
void print_last(output& out, const std::optional<std::int64_t>& last, bool json) {
  if (json) out << "{\"last\":" << (last ? std::to_string(*last) : "null") << "}\n";
  else if (last) out << std::to_string(*last) << "\n";
}

void add_next(command group) {
  command cmd = group.add("next", "Draw ids, one per line");
  cmd.about(
      "Writes each id as soon as it is drawn. Ids are leased in blocks. The unused ids of the last "
      "block are a gap, unless --give-back is set and no other process was granted a block since. "
      "--count 0 draws until the reader closes the output.");
  cmd.examples(
      "holdfast seq next --store sqlite:ids.db --create-schema --name account.id --count 3\n"
      "holdfast seq next --store postgresql://localhost/app --name account.id --count 1000 "
      "--policy adaptive\n"
      "holdfast seq next --store redis://127.0.0.1 --fence super --super-store "
      "postgresql://localhost/app --name account.id");
  const sequence_location location(cmd);
  const sequence_definition definition(cmd);
  const option count =
      cmd.value("--count", "K", "Number of ids (default 1)").number(0, 1'000'000'000'000);
  const option block =
      cmd.value("--block", "B", "Ids per block (default 20); with --policy adaptive: the maximum")
          .number(1, std::uint64_t{1} << 31U);
  const option policy =
      cmd.value("--policy", "", "Size of blocks (default fixed)").one_of({"fixed", "adaptive"});
  const option cycle = cmd.flag("--cycle", "Start again at the first id after the last one");
  const option wait = cmd.value("--wait", "TIME", "Maximum wait for a block: 10s (default), 1m");
  const option give_back = cmd.flag("--give-back", "Return the unused ids of the last block");
  const option json = cmd.flag("--json", "Print one JSON object for each id");
  cmd.run([=](console& io) {
    auto options = definition.options(location, io);
    options.cycle = options.cycle || cycle.is_set();
    options.give_back = give_back.is_set();
    if (wait.is_set())
      options.wait =
          std::chrono::duration_cast<std::chrono::milliseconds>(parse_duration(wait.text()));
    if (policy.text() == "adaptive") {
      adaptive_blocks sizes;
      if (block.is_set()) sizes.largest = static_cast<std::int64_t>(block.count(0));
      sizes.smallest = std::min(sizes.smallest, sizes.largest);
      options.blocks = sizes;
    } else {
      options.blocks =
          fixed_blocks{.size = static_cast<std::int64_t>(block.count(default_block(options)))};
    }
    auto ids = location.open_database(io).sequence(definition.name.text(), std::move(options));
    // Fails at once if the database cannot be used: next() would wait for it.
    (void)ids.counter();
    const auto requested = count.count(1);
    for (std::uint64_t i = 0; requested == 0 || i < requested; ++i) {
      const auto id = std::to_string(ids.next());
      io.out << (json.is_set() ? "{\"id\":" + id + "}\n" : id + "\n");
      io.out.flush();  // a drawn id must not be lost if this process is killed
    }
    (void)ids.close(std::chrono::steady_clock::now() + 5s);
    return exit_ok;
  });
}

void add_peek(command group) {
  command cmd = group.add("peek", "Print the last id that was allocated");
  cmd.about("No id in use is beyond it. Exit code 1 if no id was allocated yet.");
  cmd.examples("holdfast seq peek --store sqlite:ids.db --name account.id");
  const sequence_location location(cmd);
  const sequence_definition definition(cmd);
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const auto last = location.open_database(io)
                          .sequence(definition.name.text(), definition.options(location, io))
                          .peek();
    print_last(io.out, last, json.is_set());
    if (!last) io.warn("no id of " + printable(definition.name.text()) + " was allocated yet");
    return last ? exit_ok : exit_negative;
  });
}

void add_seq_list(command group) {
  command cmd = group.add("list", "List the sequences and their last allocated number");
  cmd.about(
      "The last number counts ids from 1. It equals the last id if the sequence starts at 1 and "
      "increments by 1.");
  cmd.examples(
      "holdfast seq list --store sqlite:ids.db\nholdfast seq list --store sqlite:ids.db --json");
  const sequence_location location(cmd);
  const option limit = cmd.value("--limit", "COUNT", "Maximum number of sequences (default 1000)")
                           .number(1, 1'000'000'000);
  const option json = cmd.flag("--json", "Print one JSON object per line");
  cmd.run([=](console& io) {
    const auto blocks = location.open_database(io).block_store(location.store_options(io));
    constexpr std::size_t page_size = 500;
    long_table rows(io.out, {"last", "epoch", "name"});
    std::string after;
    for (auto remaining = limit.count(1000); remaining > 0;) {
      const auto requested = std::min<std::size_t>(page_size, remaining);
      const auto page = blocks->list(requested, after);
      for (const auto& counter : page) {
        if (json.is_set()) {
          io.out << "{\"name\":" << json_string(counter.name)
                 << ",\"last\":" << std::to_string(counter.state.last)
                 << ",\"epoch\":" << std::to_string(counter.state.epoch) << "}\n";
          continue;
        }
        rows.add({std::to_string(counter.state.last), std::to_string(counter.state.epoch),
                  printable(counter.name)});
      }
      if (page.size() < requested) break;
      remaining -= page.size();
      after = page.back().name;
    }
    rows.finish();
    return exit_ok;
  });
}

void add_ensure(command group) {
  command cmd = group.add("ensure", "Make sure that no id up to this one is granted");
  cmd.about(
      "Use it after an import of rows that have ids. The sequence never goes back. Prints the last "
      "allocated id.");
  cmd.examples("holdfast seq ensure --store sqlite:ids.db --name account.id --id 100000");
  const sequence_location location(cmd);
  const sequence_definition definition(cmd);
  const option id = cmd.value("--id", "ID", "Highest id in use").required();
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    auto ids = location.open_database(io).sequence(definition.name.text(),
                                                   definition.options(location, io));
    const auto last = ids.ensure_at_least(parse_integer("--id", id.text()));
    print_last(io.out, last, json.is_set());
    return exit_ok;
  });
}

void add_reset(command group) {
  command cmd = group.add("reset", "Set a sequence back, which can grant ids twice");
  cmd.about(
      "Use it for tests, or after all data was deleted. Processes that hold a block continue to "
      "use it. The sequence is reset only if the counter still equals --last and --epoch, as "
      "printed by: holdfast seq list. Otherwise the exit code is 1.");
  cmd.examples(
      "holdfast seq reset --store sqlite:ids.db --name account.id --last 60 --epoch 1 --next 1");
  const sequence_location location(cmd);
  const sequence_definition definition(cmd);
  const option last = cmd.value("--last", "N", "The value `last` of holdfast seq list")
                          .number(0, std::uint64_t{1} << 63U)
                          .required();
  const option epoch = cmd.value("--epoch", "E", "The value `epoch` of holdfast seq list")
                           .number(1, std::uint64_t{1} << 62U)
                           .required();
  const option next = cmd.value("--next", "ID", "Next id to grant").required();
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    auto ids = location.open_database(io).sequence(definition.name.text(),
                                                   definition.options(location, io));
    const counter_state expected{.last = parse_integer("--last", last.text()),
                                 .epoch = parse_integer("--epoch", epoch.text())};
    try {
      ids.reset_unsafe(parse_integer("--next", next.text()), expected);
    } catch (const error& refused) {
      if (refused.code() != errc::duplicate) throw;
      if (json.is_set()) io.out << "{\"reset\":false}\n";
      io.warn("not reset: the counter has other values; see: holdfast seq list");
      return exit_negative;
    }
    if (json.is_set()) io.out << "{\"reset\":true}\n";
    return exit_ok;
  });
}

void add_define(command group) {
  command cmd = group.add("define", "Show or change the definition of a sequence");
  cmd.about(
      "Start, increment and limits are kept with the counter at its first use, with the fence. "
      "Users "
      "with other values are refused. Without --replace it prints the definition. With --replace "
      "it changes the definition to the options that are set, and defaults. Every later id lies "
      "beyond all ids of the old definition. Processes with the old options use up their block, "
      "and then get an error. Exit code 1 if the sequence has no definition yet, or another "
      "process changed it meanwhile.");
  cmd.examples(
      "holdfast seq define --store sqlite:ids.db --name account.id\n"
      "holdfast seq define --store sqlite:ids.db --name account.id --increment 2 --replace");
  const sequence_location location(cmd);
  const sequence_definition definition(cmd);
  const option cycle = cmd.flag("--cycle", "Start again at the first id after the last one");
  const option replace = cmd.flag("--replace", "Change the definition");
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    auto options = definition.new_options(location, io);
    options.cycle = cycle.is_set();
    auto ids = location.open_database(io).sequence(definition.name.text(), std::move(options));
    const auto stored = ids.definition();
    if (!stored && json.is_set()) io.out << "{\"definition\":null}\n";
    if (!stored) {
      io.warn("no definition of " + printable(definition.name.text()) +
              "; it is stored when the first id is drawn");
      return exit_negative;
    }
    if (replace.is_set()) {
      try {
        ids.redefine(*stored);
      } catch (const error& refused) {
        if (refused.code() != errc::duplicate) throw;
        io.warn(refused.what());
        return exit_negative;
      }
    }
    const auto text = ids.definition().value_or("");
    if (json.is_set()) io.out << "{\"definition\":" << json_string(text) << "}\n";
    else io.out << printable(text) << "\n";
    return exit_ok;
  });
}

void add_seq_schema(command group) {
  command cmd = group.add("schema", "Print the SQL that creates the table");
  cmd.examples("holdfast seq schema --dialect postgresql --prefix MYAPP_");
  const option dialect =
      cmd.value("--dialect", "", "SQL dialect of the database")
          .one_of({"sqlite", "postgresql", "mysql", "mariadb", "h2", "sqlserver", "oracle"})
          .required();
  const option prefix = cmd.value("--prefix", "P", "Prefix of the table name");
  const option json = cmd.flag("--json", "Print the statements as one JSON object");
  cmd.run([=](console& io) {
    print_schema(io.out, sequence_schema(schema_dialect(dialect), {.prefix = prefix.text()}),
                 json.is_set());
    return exit_ok;
  });
}

void add_seq_doctor(command group) {
  command cmd = group.add("doctor", "Check whether a database can lose granted ids");
  cmd.about(
      "Checks that the table is there, and the settings that decide whether a granted block "
      "survives a crash. Changes nothing. "
      "Exit code 1 if ids could be granted twice, or not at all, with the reasons and what to do. "
      "On Redis the "
      "result depends on the fence. Warns of connections to other machines that are not "
      "encrypted.");
  cmd.examples(
      "holdfast seq doctor --store postgresql://localhost/app\n"
      "holdfast seq doctor --store redis://127.0.0.1 --fence none --json");
  const sequence_location location(cmd);
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const auto blocks = location.open_database(io).block_store(location.store_options(io));
    auto reasons = blocks->missing_objects();
    for (auto& reason : blocks->unsafe_settings()) reasons.push_back(std::move(reason));
    const auto warnings = location.plaintext_warnings(io);
    if (json.is_set()) {
      io.out << "{\"fit\":" << (reasons.empty() ? "true" : "false")
             << ",\"reasons\":" << json_list(reasons) << ",\"warnings\":" << json_list(warnings)
             << "}\n";
    } else {
      for (const auto& reason : reasons) io.out << printable(reason) << "\n";
      for (const auto& warning : warnings) io.out << "warning: " << printable(warning) << "\n";
      io.out << (reasons.empty() ? "fit: granted ids survive a crash\n"
                                 : "not fit: ids could be granted twice, or not at all\n");
    }
    return reasons.empty() ? exit_ok : exit_negative;
  });
}

}  // namespace

void add_seq_commands(command root) {
  command group = root.add("seq", "Draw ids from sequences, which are unique across all processes");
  group.examples(
      "holdfast seq next --store sqlite:ids.db --create-schema --name account.id --count 3\n"
      "holdfast seq list --store sqlite:ids.db");
  add_next(group);
  add_peek(group);
  add_seq_list(group);
  add_ensure(group);
  add_reset(group);
  add_define(group);
  add_seq_transfer(group);
  add_seq_schema(group);
  add_seq_doctor(group);
}

}  // namespace holdfast::cli
