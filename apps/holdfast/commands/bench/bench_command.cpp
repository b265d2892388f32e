#include "commands/bench/bench_command.hpp"

#include "commands/groups.hpp"
#include "terminal/text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <utility>

namespace holdfast::cli {

namespace {

constexpr std::size_t max_payload_bytes = std::size_t{16} << 20U;

/// `812 ns`, `31.4 us`, `2.05 ms`, `1.20 s`.
std::string duration_text(std::chrono::nanoseconds duration) {
  struct unit {
    double nanoseconds;
    const char* name;
  };
  constexpr std::array<unit, 4> units{{{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}}};
  const auto nanoseconds = static_cast<double>(duration.count());
  for (const auto& [size, name] : units) {
    if (nanoseconds < size && size > 1) continue;
    const double number = nanoseconds / size;
    const int digits = size == 1 || number >= 100 ? 0 : number >= 10 ? 1 : 2;
    std::array<char, 32> text{};
    (void)std::snprintf(text.data(), text.size(), "%.*f %s", digits, number, name);
    return text.data();
  }
  return {};
}

double microseconds_of(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

std::string table_line(const std::string& name, const std::string& rate, const std::string& unit,
                       const std::string& p50, const std::string& p99) {
  std::array<char, 160> line{};
  (void)std::snprintf(line.data(), line.size(), "%-14s %14s  %-13s %9s %9s\n", name.c_str(),
                      rate.c_str(), unit.c_str(), p50.c_str(), p99.c_str());
  return line.data();
}

}  // namespace

bench_run::bench_run(console& io, std::string_view name, bench_settings settings, bool json)
    : io_(io), name_(name), settings_(settings), json_(json) {}

void bench_run::measure(const bench_workload& workload) {
  print(cli::measure(workload, settings_, signals_));
}

void bench_run::print(const bench_row& row) {
  const auto p50 = row.latencies.quantile(0.5);
  const auto p99 = row.latencies.quantile(0.99);
  if (json_) {
    json_rows_ += (json_rows_.empty() ? "" : ",") + std::string("{\"name\":") +
                  json_string(row.name) + ",\"rate\":" + json_number(row.rate) +
                  ",\"unit\":" + json_string(row.unit) + ",\"count\":" + std::to_string(row.count) +
                  ",\"p50_us\":" + json_number(microseconds_of(p50)) +
                  ",\"p99_us\":" + json_number(microseconds_of(p99)) + "}";
    return;
  }
  // The header is printed with the first row, so that an error is not printed below a header.
  if (!std::exchange(has_header_, true))
    io_.out << table_line("name", "rate", "unit", "p50", "p99");
  io_.out << table_line(row.name, grouped(static_cast<std::uint64_t>(row.rate)), row.unit,
                        duration_text(p50), duration_text(p99));
  io_.out.flush();
}

void bench_run::finish() {
  if (!json_) return;
  io_.out << "{\"bench\":" << json_string(name_) << ",\"database\":" << json_string(database_)
          << ",\"payload\":" << std::to_string(settings_.payload_bytes)
          << ",\"threads\":" << std::to_string(settings_.threads)
          << ",\"seconds\":" << std::to_string(settings_.duration.count()) << ",\"rows\":["
          << json_rows_ << "]}\n";
}

void add_bench_command(command group, const bench_command_description& description,
                       bench_action measure_rows) {
  command cmd = group.add(description.name, description.summary);
  cmd.about(std::string(description.about) +
            "\nIt works on names of its own, which begin with BENCH_, and removes them at the end, "
            "also after an error or Ctrl-C.");
  const std::string start =
      "holdfast bench " + std::string(description.name) + " " + std::string(description.url_option);
  const bool outbox = description.url_option == "--outbox";
  cmd.examples(start + " sqlite:app.db\n" + start +
               (outbox ? " redis://127.0.0.1:6379" : " postgresql://app@127.0.0.1/app") +
               (description.has_payload ? " --payload 4096" : "") + " --threads 8\n" + start +
               " memory: --seconds 1 --json");
  const option url = cmd.value(description.url_option, "URL", description.url_summary).required();
  std::optional<option> payload;
  if (description.has_payload)
    payload = cmd.value("--payload", "BYTES", "Size of a payload (default 1024)")
                  .number(1, max_payload_bytes);
  const option seconds =
      cmd.value("--seconds", "N", "Seconds for each row (default 3)").number(1, 3'600);
  const option threads =
      cmd.value("--threads", "N", "Threads that work at the same time (default 1)").number(1, 256);
  const option json = cmd.flag("--json", "Print one JSON object");
  const password_option password(cmd);
  const std::string name(description.name);
  cmd.run([=](console& io) {
    const bench_settings settings{
        .duration = std::chrono::seconds(seconds.count(3)),
        .threads = static_cast<std::size_t>(threads.count(1)),
        .payload_bytes = payload ? static_cast<std::size_t>(payload->count(1024)) : 0};
    bench_run run(io, name, settings, json.is_set());
    {
      private_area area(io, url.text(), password.read(io), settings.threads);
      run.set_database(area.kind());
      measure_rows(run, area);
    }
    run.finish();
    return exit_ok;
  });
}

std::string make_bench_payload(std::size_t bytes, std::uint64_t number) {
  // Random letters: a database that compresses payloads must not get an advantage.
  constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text(bytes, '"');
  std::uint64_t state = number + 1;
  for (std::size_t i = 1; i + 1 < bytes; ++i) {
    state = state * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    text[i] = letters[state >> 58U];
  }
  if (bytes == 1) text = "0";
  return text;
}

std::size_t payloads_within(std::size_t total_bytes, const bench_settings& settings,
                            std::size_t most) {
  return std::clamp<std::size_t>(total_bytes / std::max<std::size_t>(1, settings.payload_bytes), 1,
                                 most);
}

std::size_t batch_size(const bench_settings& settings) {
  return payloads_within(std::size_t{4} << 20U, settings, 100);
}

void add_bench_commands(command root) {
  command group = root.add("bench", "Measure what a database does: rates and latencies");
  group.examples(
      "holdfast bench store --store sqlite:app.db\n"
      "holdfast bench outbox --outbox redis://127.0.0.1:6379 --threads 4 --payload 512");
  add_store_bench(group);
  add_failover_bench(group);
  add_sequence_bench(group);
  add_outbox_bench(group);
}

}  // namespace holdfast::cli
