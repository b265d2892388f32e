// `holdfast bench sequence`: ids, with blocks of a fixed size, adaptive blocks, and handles.

#include <holdfast/sequence.hpp>

#include "commands/bench/bench_command.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

/// Measures `generator_of(thread).next()`. One latency in 256 is measured, because reading the
/// clock takes longer than drawing an id.
template <class GeneratorOf>
void measure_ids(bench_run& run, std::string name, const GeneratorOf& generator_of) {
  const auto draw = [&](std::size_t thread, std::uint64_t count) {
    auto& generator = generator_of(thread);
    for (std::uint64_t i = 0; i < count; ++i) (void)generator.next();
    return count;
  };
  run.measure({.name = std::move(name),
               .unit = "ids/s",
               .operation = [&](std::size_t thread) { return draw(thread, 1); },
               .unmeasured = [&](std::size_t thread) { return draw(thread, 255); }});
}

void measure_sequence_rows(bench_run& run, private_area& area) {
  const auto location = area.sequence_location();
  const auto open_sequence = [&](std::string_view name, const block_policy& blocks) {
    return area.connections().sequence(
        name, {.blocks = blocks, .wait = std::chrono::seconds(30), .store = location});
  };
  auto fixed = open_sequence("next", fixed_blocks{});
  auto adaptive = open_sequence("next_adaptive", adaptive_blocks{});
  std::vector<sequence_handle> handles;
  for (std::size_t i = 0; i < run.settings().threads; ++i) handles.push_back(adaptive.handle());

  measure_ids(run, "next", [&](std::size_t) -> sequence& { return fixed; });
  measure_ids(run, "next_adaptive", [&](std::size_t) -> sequence& { return adaptive; });
  measure_ids(run, "handle", [&](std::size_t thread) -> auto& { return handles[thread]; });
}

}  // namespace

void add_sequence_bench(command group) {
  add_bench_command(
      group,
      {.name = "sequence",
       .summary = "Ids of a sequence",
       .about = "next: blocks of 20 ids, the default. next_adaptive: blocks that grow with the "
                "rate. handle: one handle for each thread, on adaptive blocks. On Redis without a "
                "fence.",
       .url_option = "--store",
       .url_summary = "The database: sqlite:app.db, postgresql://host/name, mysql://host/name, "
                      "h2://host/name, redis://host:6379, memory:",
       .has_payload = false},
      measure_sequence_rows);
}

}  // namespace holdfast::cli
