#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "scratch_directory.hpp"
#include "stage.hpp"

#include <algorithm>
#include <future>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

/// What another process draws.
struct drawn {
  std::vector<std::int64_t> ids{};
};

drawn draw_elsewhere(const std::string& url, const std::string& count) {
  drawn result;
  std::istringstream lines(run_again({"seq", "next", "--store", url, "--name", "account.id", "--count", count, "--block", "10"}));
  for (std::int64_t id = 0; lines >> id;) result.ids.push_back(id);
  return result;
}

/// `1-10, 21-30`: the runs of ids that follow each other.
std::string runs_of(const std::vector<std::int64_t>& ids) {
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
  show.say(
      "Two processes draw ids from one sequence, at the same time. Each leases ten at once from an SQLite file, and hands them out from "
      "its "
      "memory.");
  show.gap();
  const scratch_directory place;
  (void)open(place.url()).block_store({.create_schema = true});
  show.typed("holdfast seq next --store sqlite:ids.db --name account.id --count 30 --block 10");
  auto other = std::async(std::launch::async, [&] { return draw_elsewhere(place.url(), "30"); });
  const drawn first = draw_elsewhere(place.url(), "30");
  const drawn second = other.get();
  std::set<std::int64_t> all(first.ids.begin(), first.ids.end());
  all.insert(second.ids.begin(), second.ids.end());
  const auto last = open(place.url()).sequence("account.id").peek();
  // Who gets which block differs from run to run; that they share nothing does not.
  show.show("each drew", std::to_string(first.ids.size()) + " ids, growing");
  show.show("together", std::to_string(all.size()) + " different ids, the highest " + std::to_string(*all.rbegin()));
  show.show("allocated", last ? std::to_string(*last) : "nothing");
  if (all.size() == 60 && std::ranges::is_sorted(first.ids) && std::ranges::is_sorted(second.ids)) {
    show.good("no id came twice, and nobody waited for the database but once in ten");
  } else {
    show.bad("an id came twice: " + runs_of(first.ids) + " and " + runs_of(second.ids));
  }
}

}  // namespace

std::vector<chapter> sequence_chapters() { return {{"Ids for everybody", two_processes}}; }

}  // namespace holdfast::cli
