// The comparisons of keys.cpp under Google Benchmark, for its options: filters, repetitions,
// counters, comparisons of two builds. It does not check bars; `holdfast_bench keys` does.

#include "bench/keys.hpp"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

namespace {

void add(const std::string& name, const holdfast::bench::workload& work) {
  // In batches, so that the call through std::function is not measured.
  benchmark::RegisterBenchmark(name.c_str(), [work](benchmark::State& state) {
    constexpr std::uint64_t batch = 64;
    while (state.KeepRunningBatch(batch)) work(batch);
  });
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const auto& compared : holdfast::bench::key_comparisons()) {
    add(compared.name + "/ours", compared.ours);
    if (compared.floor) add(compared.name + "/floor", compared.floor);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
