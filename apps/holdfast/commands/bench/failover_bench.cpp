// `holdfast bench failover`: protected calls whose upstream answers, and whose upstream fails.

#include <holdfast/failover.hpp>

#include "commands/bench/bench_command.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

/// One protected call, with an upstream that can be switched off.
class protected_upstream {
 public:
  protected_upstream(std::shared_ptr<store> target, std::size_t payload_bytes)
      : payload_(make_bench_payload(payload_bytes)),
        engine_(std::move(target), {.storage = {.read_deadline = std::chrono::seconds(30)}}),
        call_(engine_.protect("bench", {.max_payload = std::size_t{32} << 20U},
                              [this](std::int64_t) { return answer(); })) {}
  protected_upstream(const protected_upstream&) = delete;
  protected_upstream& operator=(const protected_upstream&) = delete;

  void call(std::int64_t key) const { (void)call_(key); }
  void switch_off() { available_ = false; }
  void flush() {
    if (!engine_.flush(std::chrono::steady_clock::now() + std::chrono::minutes(1)))
      throw error(errc::unavailable, "the store did not write all answers within a minute");
  }

 private:
  [[nodiscard]] std::string answer() const {
    if (!available_) throw std::runtime_error("the upstream is switched off");
    return payload_;
  }

  std::string payload_;
  std::atomic<bool> available_ = true;
  engine engine_;
  point<std::string(std::int64_t)> call_;
};

void measure_failover_rows(bench_run& run, private_area& area) {
  const auto& settings = run.settings();
  protected_upstream upstream(area.open_store(), settings.payload_bytes);
  const auto keys =
      static_cast<std::int64_t>(payloads_within(std::size_t{32} << 20U, settings, 1'000));
  // Store an answer for each key. Flushing now and then keeps the queue of writes short.
  for (std::int64_t key = 0; key < keys; ++key) {
    upstream.call(key);
    if (key % 100 == 99) upstream.flush();
  }
  upstream.flush();

  struct alignas(64) counter {
    std::int64_t next = 0;
  };
  std::vector<counter> counters(settings.threads);
  const auto call_next = [&](std::size_t thread) {
    upstream.call(counters[thread].next++ % keys);
    return std::uint64_t{1};
  };
  run.measure({.name = "live", .unit = "calls/s", .operation = call_next});
  upstream.flush();
  upstream.switch_off();
  run.measure({.name = "stale", .unit = "calls/s", .operation = call_next});
}

}  // namespace

void add_failover_bench(command group) {
  add_bench_command(
      group,
      {.name = "failover",
       .summary = "Protected calls, with their answers in a store",
       .about = "live: the upstream answers at once; its answer is stored, on a database in the "
                "background. stale: the upstream throws, and the answer comes from the store.",
       .url_option = "--store",
       .url_summary = "The database: sqlite:app.db, postgresql://host/name, mysql://host/name, "
                      "h2://host/name, odbc:DSN=name, memory:"},
      measure_failover_rows);
}

}  // namespace holdfast::cli
