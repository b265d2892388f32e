// holdfast_bench: for developers of Holdfast. Compares each part of the library with the raw
// library below it, in the same run, and checks the ratio. `holdfast bench` is for users.

#include <holdfast/error.hpp>

#include "bench/failover.hpp"
#include "bench/keys.hpp"
#include "bench/locked_sequence.hpp"
#include "bench/overload.hpp"
#include "bench/ratio.hpp"
#include "bench/sequence.hpp"
#include "bench/serve/gateway.hpp"
#include "bench/serve/serve.hpp"
#include "bench/store/cache_policies.hpp"
#include "bench/store/memory.hpp"
#include "bench/store/sealed.hpp"
#include "bench/store/store.hpp"
#include "bench/store/write_behind.hpp"
#if HOLDFAST_HAS_REDIS
#include "bench/outbox/outbox.hpp"
#include "bench/outbox/sql_outbox.hpp"
#include "bench/redis.hpp"
#endif

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace holdfast;

enum exit_code : int { all_hold = 0, bar_missed = 1, wrong_usage = 2, unavailable = 3 };

/// A sub-command with the options that all of them have.
class bench_command {
 public:
  bench_command(CLI::App& program, std::string name, const std::string& summary,
                std::size_t default_rounds = 101)
      : name_(std::move(name)),
        command_(program.add_subcommand(name_, summary)),
        rounds_(std::make_shared<std::size_t>(default_rounds)),
        json_(std::make_shared<bool>()) {
    command_->add_flag("--json", *json_, "Print one JSON object");
    command_->add_option("--rounds", *rounds_, "Number of rounds; use at least 60 for a verdict")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
  }

  [[nodiscard]] CLI::App& options() const { return *command_; }
  [[nodiscard]] std::size_t rounds() const { return *rounds_; }
  [[nodiscard]] bool json() const { return *json_; }

  [[nodiscard]] exit_code print(const std::vector<bench::row>& rows) const {
    std::cout << (json() ? bench::to_json(name_, rows) : bench::to_table(rows));
    return std::ranges::all_of(rows, &bench::row::holds) ? all_hold : bar_missed;
  }

 private:
  std::string name_;
  CLI::App* command_;
  std::shared_ptr<std::size_t> rounds_;
  std::shared_ptr<bool> json_;
};

/// What to run when a sub-command was given.
using actions = std::vector<std::pair<const CLI::App*, std::function<exit_code()>>>;

/// Shows how far a large table or outbox is filled, on a terminal only.
std::function<void(std::uint64_t, std::uint64_t)> make_progress() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  return [](std::uint64_t done, std::uint64_t total) {
    std::cerr << "\rfilled " << done << " of " << total << (done == total ? "\n" : "")
              << std::flush;
  };
}

/// A sub-command that measures a list of comparisons.
void add_comparisons(CLI::App& program, actions& registered, const std::string& name,
                     const std::string& summary,
                     const std::function<std::vector<bench::comparison>()>& make_comparisons) {
  const bench_command command(program, name, summary);
  const auto list = std::make_shared<bool>();
  command.options().add_flag("--list", *list, "Print the names of the rows and exit");
  registered.emplace_back(&command.options(), [=] {
    std::vector<bench::row> rows;
    for (const bench::comparison& compared : make_comparisons()) {
      if (*list) std::cout << compared.name << "\n";
      else rows.push_back(bench::measure(compared, {.rounds = command.rounds()}));
    }
    return *list ? all_hold : command.print(rows);
  });
}

/// The rows of `store --decorated`: write-behind, the memory store, sealing.
std::vector<bench::row> measure_decorators(const bench::store_bench_options& options) {
  std::vector<bench::row> rows = bench::measure_write_behind(options);
  for (const bench::comparison& compared : bench::memory_store_comparisons())
    rows.push_back(bench::measure(compared, options.measuring));
  std::ranges::move(
      bench::measure_sealed({.rounds = 3 * options.measuring.rounds, .round_seconds = 0.0005}),
      std::back_inserter(rows));
  return rows;
}

void add_store(CLI::App& program, actions& registered) {
  const bench_command command(program, "store",
                              "The store compared with the client library of its database");
  struct store_arguments {
    std::string url;
    bool large = false;
    bool decorated = false;
    bool policies = false;
  };
  const auto arguments = std::make_shared<store_arguments>();
  command.options().add_option("--store", arguments->url,
                               "sqlite:bench.db, postgresql://host/name, mysql://host/name, "
                               "h2://host/name or odbc:DSN=name");
  command.options().add_flag("--large", arguments->large,
                             "Measure also with a million rows: takes minutes and gigabytes");
  command.options().add_flag(
      "--decorated", arguments->decorated,
      "Measure write-behind, the memory store and sealing instead, each with its own floor");
  command.options().add_flag("--policies", arguments->policies,
                             "Print the hit ratios of cache policies instead; needs no database");
  registered.emplace_back(&command.options(), [=] {
    if (arguments->policies) {
      const auto rows = bench::compare_policies();
      std::cout << (command.json() ? bench::to_json(rows) : bench::to_table(rows));
      return all_hold;
    }
    if (arguments->url.empty())
      throw error(errc::invalid_argument,
                  "--store is missing; give for example --store sqlite:/tmp/bench.db");
    bench::store_bench_options options{
        .url = arguments->url, .large = arguments->large, .progress = make_progress()};
    options.measuring.rounds = command.rounds();
    return command.print(arguments->decorated ? measure_decorators(options)
                                              : bench::measure_store(options));
  });
}

void add_overload(CLI::App& program, actions& registered) {
  const bench_command command(
      program, "overload",
      "Protected calls while their upstream gets more calls than it can answer, or hangs");
  const auto seconds = std::make_shared<unsigned>(5);
  command.options()
      .add_option("--seconds", *seconds, "Length of each measurement of overload")
      ->check(CLI::Range(1, 600))
      ->capture_default_str();
  registered.emplace_back(&command.options(), [=] {
    const auto results =
        bench::measure_overload({.duration = std::chrono::milliseconds(1000) * *seconds});
    if (!command.json()) std::cout << bench::overload_table(results) << "\n";
    auto rows = bench::overload_rows(results);
    for (auto& row : bench::measure_beside_hung(std::chrono::milliseconds(200) * *seconds))
      rows.push_back(std::move(row));
    return command.print(rows);
  });
}

void add_sequence(CLI::App& program, actions& registered) {
  const bench_command command(program, "sequence",
                              "Ids compared with an atomic counter, in memory");
  const auto url = std::make_shared<std::string>();
  const auto seconds = std::make_shared<double>(2);
  command.options().add_option(
      "--store", *url,
      "Measure a counter beside a locked one instead: postgresql://host/name or mysql://host/name");
  command.options()
      .add_option("--seconds", *seconds, "With --store: seconds for each side in a round")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  registered.emplace_back(&command.options(), [=] {
    if (!url->empty())
      return command.print(
          bench::measure_locked_sequence({.url = *url,
                                          .rounds = std::min<std::size_t>(command.rounds(), 5),
                                          .round_seconds = *seconds}));
    return command.print(
        bench::measure_sequences({.rounds = command.rounds(), .round_seconds = 0.004}));
  });
}

using measurement = std::vector<bench::row> (*)(const bench::serve_bench_options&);

/// A benchmark that starts servers.
void add_servers(CLI::App& program, actions& registered, const char* name, const char* summary,
                 std::vector<std::string> (*row_names)(), measurement measure) {
  const bench_command command(program, name, summary, 15);
  struct serve_arguments {
    bench::serve_bench_options options{};
    bool list = false;
  };
  const auto arguments = std::make_shared<serve_arguments>();
#ifdef HOLDFAST_PROGRAM
  arguments->options.program = HOLDFAST_PROGRAM;
#endif
  auto& options = arguments->options;
  command.options()
      .add_option("--program", options.program, "The program holdfast that is measured")
      ->capture_default_str();
  command.options()
      .add_option("--seconds", options.seconds, "Length of the load in each round")
      ->check(CLI::Range(1, 60))
      ->capture_default_str();
  command.options().add_flag("--alone", options.alone,
                             "Measure latencies, too: on a machine that does nothing else");
  command.options().add_option("--row", options.rows, "Only this row; can be repeated");
  command.options().add_flag("--list", arguments->list, "Print the names of the rows and exit");
  registered.emplace_back(&command.options(), [=] {
    if (arguments->list) {
      for (const auto& row : row_names()) std::cout << row << "\n";
      return all_hold;
    }
    auto chosen = arguments->options;
    chosen.rounds = command.rounds();
    return command.print(measure(chosen));
  });
}

#if HOLDFAST_HAS_REDIS
void add_redis(CLI::App& program, actions& registered) {
  const bench_command command(program, "redis", "The Redis client compared with hiredis");
  const auto url = std::make_shared<std::string>();
  command.options()
      .add_option("--redis", *url, "redis://host:6379, redis+unix:///path or redis+cluster://host")
      ->required();
  registered.emplace_back(&command.options(), [=] {
    bench::redis_bench_options options{.url = *url};
    options.measuring.rounds = command.rounds();
    return command.print(bench::measure_redis(options));
  });
}

void add_outbox(CLI::App& program, actions& registered) {
  const bench_command command(program, "outbox",
                              "The outbox compared with its scripts, sent by hiredis, or with raw "
                              "SQL statements",
                              9);
  const auto arguments = std::make_shared<bench::outbox_bench_options>();
  command.options()
      .add_option("--outbox", arguments->url,
                  "redis://host:6379, redis+unix:///path, postgresql://host/name, "
                  "mysql://user@host/name or sqlite:file.db")
      ->required();
  command.options()
      .add_option("--events", arguments->events, "Events in each round")
      ->check(CLI::Range(100, 1'000'000))
      ->capture_default_str();
  command.options().add_flag("--large", arguments->large,
                             "Measure also with a million waiting events: takes a minute and a "
                             "gigabyte of the server");
  registered.emplace_back(&command.options(), [=] {
    auto options = *arguments;
    options.rounds = command.rounds();
    options.events = options.events / 100 * 100;
    options.progress = make_progress();
    if (!options.url.starts_with("redis")) return command.print(bench::measure_sql_outbox(options));
    return command.print(bench::measure_outbox(options));
  });
}
#endif

exit_code fail(const std::string& message, exit_code code) {
  std::cerr << "holdfast_bench: " << message << "\n";
  return code;
}

exit_code run(int argc, char** argv) {
  CLI::App program(
      "Compares Holdfast with the raw libraries below it. Both sides run alternately, in short "
      "rounds; medians are compared.\nExit code 1: a bar was missed. Run it again on a quiet "
      "machine before you believe it.");
  program.name("holdfast_bench");
  program.require_subcommand(1);
  actions registered;
  add_comparisons(program, registered, "keys", "Keys compared with the raw hash of the same bytes",
                  bench::key_comparisons);
  add_comparisons(program, registered, "failover",
                  "Protected calls compared with a key, a codec and a hash map",
                  bench::failover_comparisons);
  add_store(program, registered);
  add_overload(program, registered);
  add_sequence(program, registered);
  add_servers(program, registered, "serve",
              "The server compared with nginx, or with the library that it calls, by processor "
              "time; needs wrk, nginx and openssl",
              &bench::serve_row_names, &bench::measure_serve);
  add_servers(program, registered, "gateway",
              "The gateway compared with nginx as a caching proxy, by processor time; needs wrk "
              "and nginx",
              &bench::gateway_row_names, &bench::measure_gateway);
#if HOLDFAST_HAS_REDIS
  add_redis(program, registered);
  add_outbox(program, registered);
#endif
  try {
    program.parse(argc, argv);
    for (const auto& [command, action] : registered) {
      if (command->parsed()) return action();
    }
    return wrong_usage;
  } catch (const CLI::CallForHelp& help) {
    (void)program.exit(help);
    return all_hold;
  } catch (const CLI::ParseError& problem) {
    return fail(std::string(problem.what()) + "; see --help", wrong_usage);
  } catch (const error& problem) {
    return fail(problem.what(),
                problem.code() == errc::invalid_argument ? wrong_usage : unavailable);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& problem) {
    return fail(problem.what(), unavailable);
  }
}
