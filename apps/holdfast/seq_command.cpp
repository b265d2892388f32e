#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "entry_text.hpp"
#include "groups.hpp"
#include "seq_place.hpp"
#include "text.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace holdfast::cli {

namespace {

using namespace std::chrono_literals;

/// 20, or as many as there are ids.
std::uint64_t usual_block(const sequence_options& shape) {
  const bool up = shape.increment > 0;
  const std::int64_t low = up ? shape.start : shape.min;
  const std::int64_t high = up ? shape.max : shape.start;
  if (shape.increment == 0 || low > high) return 20;  // refused, with the reason
  const auto step = up ? static_cast<std::uint64_t>(shape.increment) : 0 - static_cast<std::uint64_t>(shape.increment);
  const std::uint64_t last = (static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low)) / step;
  return last < 20 ? last + 1 : 20;
}

void add_next(command group) {
  command at = group.add("next", "Draw ids, one a line");
  at.about(
      "Each id is written out when it is drawn. Ids are leased in blocks; what is left of the last one when the command ends is a gap,\n"
      "unless --give-back is given and nobody was granted a block since. --count 0 draws until the reader goes away.");
  at.examples(
      "holdfast seq next --store sqlite:ids.db --create-schema --name account.id --count 3\n"
      "holdfast seq next --store postgresql://localhost/app --name account.id --count 1000 --policy adaptive\n"
      "holdfast seq next --store redis://127.0.0.1 --fence super --super-store postgresql://localhost/app --name account.id");
  const sequence_place place(at);
  const sequence_shape shape(at);
  const option count = at.value("--count", "K", "How many (default 1)").number(0, 1'000'000'000'000);
  const option block =
      at.value("--block", "B", "Ids in a block (default 20); with adaptive, in the largest one").number(1, std::uint64_t{1} << 31U);
  const option policy = at.value("--policy", "", "How blocks are sized (default fixed)").one_of({"fixed", "adaptive"});
  const option cycle = at.flag("--cycle", "After the last id begin again at the first");
  const option wait = at.value("--wait", "TIME", "How long to wait for a block: 10s (default), 1m");
  const option give_back = at.flag("--give-back", "Return what is left of the last block");
  at.run([=](console& io) {
    auto options = shape.options(place, io);
    options.cycle = cycle.given();
    options.give_back = give_back.given();
    if (wait.given()) options.wait = std::chrono::duration_cast<std::chrono::milliseconds>(read_duration(wait.text()));
    if (policy.text() == "adaptive") {
      adaptive_blocks sized;
      if (block.given()) sized.largest = static_cast<std::int64_t>(block.count(0));
      sized.smallest = std::min(sized.smallest, sized.largest);
      options.blocks = sized;
    } else {
      options.blocks = fixed_blocks{.size = static_cast<std::int64_t>(block.count(usual_block(options)))};
    }
    auto ids = place.open_database(io).sequence(shape.name.text(), std::move(options));
    const auto wanted = count.count(1);
    for (std::uint64_t i = 0; wanted == 0 || i < wanted; ++i) {
      io.out << std::to_string(ids.next()) << "\n";
      io.out.flush();  // whoever reads it may use it: it must not be lost with us
    }
    (void)ids.close(std::chrono::steady_clock::now() + 5s);
    return exit_fine;
  });
}

void add_peek(command group) {
  command at = group.add("peek", "Print the last id that was allocated to anybody");
  at.about("No id in use lies beyond it. Exit code 1 when none was allocated yet.");
  at.examples("holdfast seq peek --store sqlite:ids.db --name account.id");
  const sequence_place place(at);
  const sequence_shape shape(at);
  at.run([=](console& io) {
    const auto last = place.open_database(io).sequence(shape.name.text(), shape.options(place, io)).peek();
    if (!last) return exit_no;
    io.out << std::to_string(*last) << "\n";
    return exit_fine;
  });
}

void add_seq_list(command group) {
  command at = group.add("list", "List the sequences, with how many ids each has allocated");
  at.about("The last number counts ids from 1; it is the last id where a sequence starts at 1 and increments by 1.");
  at.examples("holdfast seq list --store sqlite:ids.db\nholdfast seq list --store sqlite:ids.db --json");
  const sequence_place place(at);
  const option limit = at.value("--limit", "COUNT", "At most so many (default 1000)").number(1, 1'000'000'000);
  const option json = at.flag("--json", "One JSON object a line");
  at.run([=](console& io) {
    const auto blocks = place.open_database(io).block_store(place.store_options(io));
    constexpr std::size_t page = 500;
    std::string after;
    for (auto left = limit.count(1000); left > 0;) {
      const auto some = blocks->list(std::min<std::size_t>(page, left), after);
      for (const auto& each : some) {
        if (json.given()) {
          io.out << "{\"name\":" << json_string(each.name) << ",\"last\":" << std::to_string(each.state.last)
                 << ",\"epoch\":" << std::to_string(each.state.epoch) << "}\n";
          continue;
        }
        // After the first entry is there: an error must not follow a table's head.
        if (after.empty() && &each == &some.front()) io.out << "last                  epoch  name\n";
        std::string last = std::to_string(each.state.last);
        std::string epoch = std::to_string(each.state.epoch);
        last.resize(std::max<std::size_t>(last.size(), 20), ' ');
        epoch.resize(std::max<std::size_t>(epoch.size(), 5), ' ');
        io.out << last << "  " << epoch << "  " << printable(each.name) << "\n";
      }
      if (some.size() < std::min<std::size_t>(page, left)) break;
      left -= some.size();
      after = some.back().name;
    }
    return exit_fine;
  });
}

void add_ensure(command group) {
  command at = group.add("ensure", "See to it that no id up to this one is granted any more");
  at.about("For after an import of rows that have ids. Never goes back. Prints the last id that is allocated then.");
  at.examples("holdfast seq ensure --store sqlite:ids.db --name account.id --id 100000");
  const sequence_place place(at);
  const sequence_shape shape(at);
  const option id = at.value("--id", "ID", "The highest id that is in use").required();
  at.run([=](console& io) {
    auto ids = place.open_database(io).sequence(shape.name.text(), shape.options(place, io));
    const auto last = ids.ensure_at_least(read_whole("--id", id.text()));
    if (last) io.out << std::to_string(*last) << "\n";
    return exit_fine;
  });
}

void add_reset(command group) {
  command at = group.add("reset", "Set a sequence back: ids can then come twice");
  at.about(
      "For tests, and for data that was deleted. Processes that hold a block go on with it until it is used up. It happens only if the\n"
      "counter is still as you saw it with: holdfast seq list. Exit code 1 when it is not.");
  at.examples("holdfast seq reset --store sqlite:ids.db --name account.id --last 60 --epoch 1 --next 1");
  const sequence_place place(at);
  const sequence_shape shape(at);
  const option last = at.value("--last", "N", "What list shows as last").number(0, std::uint64_t{1} << 63U).required();
  const option epoch = at.value("--epoch", "E", "What list shows as epoch").number(1, std::uint64_t{1} << 62U).required();
  const option next = at.value("--next", "ID", "The id that is to come next").required();
  at.run([=](console& io) {
    auto ids = place.open_database(io).sequence(shape.name.text(), shape.options(place, io));
    const counter_state seen{.last = read_whole("--last", last.text()), .epoch = read_whole("--epoch", epoch.text())};
    try {
      ids.reset_unsafe(read_whole("--next", next.text()), seen);
    } catch (const error& refused) {
      if (refused.code() != errc::duplicate) throw;
      io.warn("not reset: the counter is not as you say; look at it with: holdfast seq list");
      return exit_no;
    }
    return exit_fine;
  });
}

void add_seq_schema(command group) {
  command at = group.add("schema", "Print what creates the table");
  at.examples("holdfast seq schema --dialect postgresql --prefix MYAPP_");
  const option dialect =
      at.value("--dialect", "", "Whose words").one_of({"sqlite", "postgresql", "mysql", "mariadb", "h2", "sqlserver", "oracle"}).required();
  const option prefix = at.value("--prefix", "P", "What the table's name begins with");
  at.run([=](console& io) {
    for (const auto id : {sql::dialect_id::sqlite, sql::dialect_id::postgresql, sql::dialect_id::mysql, sql::dialect_id::mariadb,
                          sql::dialect_id::h2, sql::dialect_id::sqlserver, sql::dialect_id::oracle}) {
      if (dialect.text() != to_string(id)) continue;
      for (const auto& statement : sequence_schema(id, {.prefix = prefix.text()})) io.out << statement << ";\n";
    }
    return exit_fine;
  });
}

void add_seq_doctor(command group) {
  command at = group.add("doctor", "Say whether a database keeps the ids it grants");
  at.about(
      "Looks at the settings that decide whether a granted block survives a crash, and changes nothing. Exit code 1 when ids could come\n"
      "twice, with the reasons and what to do. On Redis that depends on the fence. Warns of connections to other machines that are not\n"
      "encrypted.");
  at.examples(
      "holdfast seq doctor --store postgresql://localhost/app\n"
      "holdfast seq doctor --store redis://127.0.0.1 --fence none --json");
  const sequence_place place(at);
  const option json = at.flag("--json", "Print one JSON object");
  at.run([=](console& io) {
    const auto reasons = place.open_database(io).block_store(place.store_options(io))->unsafe_settings();
    const auto warnings = place.plaintext_warnings(io);
    if (json.given()) {
      io.out << "{\"fit\":" << (reasons.empty() ? "true" : "false") << ",\"reasons\":" << json_list(reasons)
             << ",\"warnings\":" << json_list(warnings) << "}\n";
    } else {
      for (const auto& each : reasons) io.out << printable(each) << "\n";
      for (const auto& each : warnings) io.out << "warning: " << printable(each) << "\n";
      io.out << (reasons.empty() ? "fit: it keeps what it grants\n" : "not fit: ids could come twice\n");
    }
    return reasons.empty() ? exit_fine : exit_no;
  });
}

}  // namespace

void add_seq_commands(command root) {
  command group = root.add("seq", "Sequences: ids that are unique wherever the database can be reached");
  group.examples(
      "holdfast seq next --store sqlite:ids.db --create-schema --name account.id --count 3\n"
      "holdfast seq list --store sqlite:ids.db");
  add_next(group);
  add_peek(group);
  add_seq_list(group);
  add_ensure(group);
  add_reset(group);
  add_seq_schema(group);
  add_seq_doctor(group);
}

}  // namespace holdfast::cli
