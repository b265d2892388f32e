// The demonstration of sequences.

#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "demo/child_process.hpp"
#include "demo/scratch_directory.hpp"
#include "demo/stage.hpp"

#include <algorithm>
#include <future>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

/// Draws ids in another process.
std::vector<std::int64_t> draw_in_child(const std::string& url, const std::string& count) {
  std::vector<std::int64_t> ids;
  std::istringstream lines(run_self(
      {"seq", "next", "--store", url, "--name", "account.id", "--count", count, "--block", "10"}));
  for (std::int64_t id = 0; lines >> id;) ids.push_back(id);
  return ids;
}

/// `1-10, 21-30`.
std::string ranges_of(const std::vector<std::int64_t>& ids) {
  std::string text;
  for (std::size_t i = 0; i < ids.size();) {
    std::size_t end = i;
    while (end + 1 < ids.size() && ids[end + 1] == ids[end] + 1) ++end;
    text.append(text.empty() ? "" : ", ").append(std::to_string(ids[i]));
    if (end > i) text.append("-").append(std::to_string(ids[end]));
    i = end + 1;
  }
  return text;
}

void two_processes(stage& show) {
  show.paragraph(
      "Two processes draw ids from one sequence at the same time. Each leases blocks of ten from "
      "an SQLite file, and draws the ids of a block from memory.");
  show.gap();
  const scratch_directory directory;
  (void)open(directory.url()).block_store({.create_schema = true});
  show.typed("holdfast seq next --store sqlite:ids.db --name account.id --count 30 --block 10");
  auto other = std::async(std::launch::async, [&] { return draw_in_child(directory.url(), "30"); });
  const auto first = draw_in_child(directory.url(), "30");
  const auto second = other.get();
  std::set<std::int64_t> all(first.begin(), first.end());
  all.insert(second.begin(), second.end());
  const auto last = open(directory.url()).sequence("account.id").peek();
  // Print only what is the same in every run: the blocks of a process differ.
  show.show("each drew", std::to_string(first.size()) + " ids, in ascending order");
  show.show("together", std::to_string(all.size()) + " different ids, the highest " +
                            std::to_string(*all.rbegin()));
  show.show("allocated", last ? std::to_string(*last) : "nothing");
  if (all.size() == 60 && std::ranges::is_sorted(first) && std::ranges::is_sorted(second)) {
    show.good("no id was drawn twice, and only one draw in ten used the database");
  } else {
    show.bad("an id was drawn twice: " + ranges_of(first) + " and " + ranges_of(second));
  }
}

}  // namespace

std::vector<chapter> sequence_chapters() {
  return {{"Unique ids in all processes", two_processes}};
}

}  // namespace holdfast::cli
