#include "groups.hpp"
#include "keys.hpp"
#include "ratio.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

/// One capability's rows: later ones differ only in where their contests come from.
void add_bench(command group, std::string name, std::string_view summary, std::function<std::vector<bench::contest>()> contests) {
  command at = group.add(name, summary);
  at.about(
      "Ours and the floor run in turn, at least 60 short rounds each; medians are compared.\n"
      "Exit code 1 means that a bar was missed: run it again on a quiet machine before believing it.");
  at.examples("holdfast bench " + name + "\nholdfast bench " + name + " --json\nholdfast bench " + name + " --rounds 301");
  const option json = at.flag("--json", "Print one JSON object");
  const option rounds =
      at.value("--rounds", "N", "How many rounds; 101 if not given, fewer than 60 are only good for a first look").number(1, 100'000);
  const option list = at.flag("--list", "Only name the rows");

  at.run([=](console& io) {
    const std::vector<bench::contest> all = contests();
    if (list.given()) {
      for (const bench::contest& each : all) io.out << each.name << "\n";
      return exit_fine;
    }
    bench::settings how;
    how.rounds = static_cast<std::size_t>(rounds.count(how.rounds));
    std::vector<bench::row> rows;
    for (const bench::contest& each : all) rows.push_back(bench::measure(each, how));
    io.out << (json.given() ? bench::to_json(name, rows) : bench::to_table(rows));
    return std::ranges::all_of(rows, &bench::row::holds) ? exit_fine : exit_no;
  });
}

}  // namespace

void add_bench_commands(command root) {
  command group = root.add("bench", "Measure each figure beside its floor, in the same run, as a ratio");
  group.examples("holdfast bench keys\nholdfast bench keys --json | jq '.rows[] | select(.holds | not)'");
  add_bench(group, "keys", "Keys beside the raw hash of the same bytes", bench::key_contests);
}

}  // namespace holdfast::cli
