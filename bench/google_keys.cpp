/// \file
/// The same cases under Google Benchmark, for those who want its options: filters, repetitions, counters, comparisons of two builds.
/// It judges nothing: bars are checked by `holdfast bench keys`.

#include "keys.hpp"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <string>

namespace {

void add(const std::string& name, const std::function<void(std::uint64_t)>& work) {
  // In batches, so that the call through std::function does not count.
  benchmark::RegisterBenchmark(name.c_str(), [work](benchmark::State& state) {
    constexpr std::uint64_t batch = 64;
    while (state.KeepRunningBatch(batch)) work(batch);
  });
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const holdfast::bench::contest& each : holdfast::bench::key_contests()) {
    add(each.name + "/ours", each.ours);
    if (each.floor) add(each.name + "/floor", each.floor);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
