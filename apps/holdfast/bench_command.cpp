#include <holdfast/error.hpp>

#include "cache_policies.hpp"
#include "failover.hpp"
#include "groups.hpp"
#include "keys.hpp"
#include "outbox_bench.hpp"
#include "password_option.hpp"
#include "ratio.hpp"
#include "redis_bench.hpp"
#include "sequence_bench.hpp"
#include "store_bench.hpp"
#include "store_decorated.hpp"
#include "store_memory.hpp"
#include "store_sealed.hpp"
#include "text.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

exit_code tell(console& io, const option& json, const std::string& name, const std::vector<bench::row>& rows) {
  io.out << (json.given() ? bench::to_json(name, rows) : bench::to_table(rows));
  return std::ranges::all_of(rows, &bench::row::holds) ? exit_fine : exit_no;
}

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
    return tell(io, json, name, rows);
  });
}

/// What is put on a store, part by part.
std::vector<bench::row> decorated_rows(const bench::store_bench& what) {
  std::vector<bench::row> rows = bench::measure_write_behind(what);
  for (const bench::contest& each : bench::memory_store_contests()) rows.push_back(bench::measure(each, what.how));
  std::ranges::move(bench::measure_sealed({.rounds = 3 * what.how.rounds, .round_seconds = 0.0005}), std::back_inserter(rows));
  return rows;
}

void add_store_bench(command group) {
  command at = group.add("store", "The store beside the raw client library of its database");
  at.about(
      "Works in tables of its own, BENCH_<process>_..., and drops them at the end. Ours and the floor run in turn; medians are compared.\n"
      "Exit code 1 means that a bar was missed: run it again on a quiet machine before believing it.");
  at.examples(
      "holdfast bench store --store sqlite:/tmp/bench.db\n"
      "holdfast bench store --store postgresql://app@127.0.0.1/app --json\n"
      "holdfast bench store --store mysql://app@127.0.0.1/app --large\n"
      "holdfast bench store --store 'odbc:DSN=answers'\n"
      "holdfast bench store --store sqlite:/tmp/bench.db --decorated\n"
      "holdfast bench store --policies");
  const option url =
      at.value("--store", "URL", "The database: sqlite:bench.db, postgresql://host/name, mysql://host/name, h2://host/name, odbc:DSN=name");
  const option json = at.flag("--json", "Print one JSON object");
  const password_option password(at);
  const option rounds = at.value("--rounds", "N", "How many rounds; 101 if not given").number(1, 100'000);
  const option large = at.flag("--large", "Also with a million rows: takes minutes and a few gigabytes");
  const option decorated = at.flag("--decorated", "Instead: what is put on a store, and the store in memory, each beside its own floor");
  const option policies =
      at.flag("--policies", "Instead: how many requests the policies of a bounded memory could answer; needs no database");
  at.run([=](console& io) {
    if (policies.given()) {
      const auto rows = bench::compare_policies();
      io.out << (json.given() ? bench::to_json(rows) : bench::to_table(rows));
      return exit_fine;
    }
    if (!url.given()) throw error(errc::invalid_argument, "--store is missing; give for example --store sqlite:/tmp/bench.db");
    bench::store_bench what{.url = password.added_to(url.text(), io), .large = large.given()};
    what.how.rounds = static_cast<std::size_t>(rounds.count(what.how.rounds));
    if (decorated.given()) return tell(io, json, "store", decorated_rows(what));
    if (io.err.is_terminal()) {
      what.progress = [&io](std::uint64_t done, std::uint64_t of) {
        io.err << "\rfilled " << grouped(done) << " of " << grouped(of) << (done == of ? "\n" : "");
        io.err.flush();
      };
    }
    return tell(io, json, "store", bench::measure_store(what));
  });
}

void add_sequence_bench(command group) {
  command at = group.add("sequence", "Ids beside one atomic counter, and beside the seed's lock");
  at.about(
      "In memory, without a database: what a call costs beside a bare fetch_add, on one thread and on two, and how long the slowest of "
      "ten\n"
      "thousand calls takes at a million ids a second while blocks take 2 ms. At least 60 short rounds each; medians are compared.\n"
      "Exit code 1 means that a bar was missed: run it again on a quiet machine before believing it.");
  at.examples("holdfast bench sequence\nholdfast bench sequence --json\nholdfast bench sequence --rounds 301");
  const option json = at.flag("--json", "Print one JSON object");
  const option rounds =
      at.value("--rounds", "N", "How many rounds; 101 if not given, fewer than 60 are only good for a first look").number(1, 100'000);
  at.run([=](console& io) {
    bench::settings how{.round_seconds = 0.004};
    how.rounds = static_cast<std::size_t>(rounds.count(how.rounds));
    return tell(io, json, "sequence", bench::measure_sequences(how));
  });
}

#if HOLDFAST_HAS_REDIS
void add_redis_bench(command group) {
  command at = group.add("redis", "The Redis client beside hiredis");
  at.about(
      "Works with keys of its own, {holdfast-bench-<process>}:..., and removes them at the end. Ours and the floor run in turn; medians "
      "are\n"
      "compared. Exit code 1 means that a bar was missed: run it again on a quiet machine before believing it.");
  at.examples("holdfast bench redis --redis redis://127.0.0.1:6379\nholdfast bench redis --redis redis+cluster://127.0.0.1:7000 --json");
  const option url = at.value("--redis", "URL", "The server: redis://host:6379, redis+unix:///path, redis+cluster://host:7000").required();
  const password_option password(at);
  const option json = at.flag("--json", "Print one JSON object");
  const option rounds = at.value("--rounds", "N", "How many rounds; 101 if not given").number(1, 100'000);
  at.run([=](console& io) {
    bench::redis_bench what{.url = password.added_to(url.text(), io)};
    what.how.rounds = static_cast<std::size_t>(rounds.count(what.how.rounds));
    return tell(io, json, "redis", bench::measure_redis(what));
  });
}

void add_outbox_bench(command group) {
  command at = group.add("outbox", "The outbox on Redis beside its scripts, sent by hiredis");
  at.about(
      "Works under a prefix of its own, {holdfast-bench-<process>:outbox}, and removes its keys at the end. Ours and the floor run in "
      "turn;\n"
      "medians are compared. Exit code 1 means that a bar was missed: run it again on a quiet machine before believing it.");
  at.examples(
      "holdfast bench outbox --outbox redis://127.0.0.1:6379\n"
      "holdfast bench outbox --outbox redis+unix:///run/redis.sock --json\n"
      "holdfast bench outbox --outbox redis://127.0.0.1:6379 --large");
  const option url = at.value("--outbox", "URL", "The server: redis://host:6379, redis+unix:///path").required();
  const password_option password(at);
  const option json = at.flag("--json", "Print one JSON object");
  const option rounds = at.value("--rounds", "N", "How many rounds; 9 if not given").number(1, 1'000);
  const option events = at.value("--events", "N", "Events in each round; 10000 if not given").number(100, 1'000'000);
  const option large = at.flag("--large", "Also with a million events waiting: takes a minute and a gigabyte of the server");
  at.run([=](console& io) {
    bench::outbox_bench what{.url = password.added_to(url.text(), io), .large = large.given()};
    what.rounds = static_cast<std::size_t>(rounds.count(what.rounds));
    what.events = static_cast<std::size_t>(events.count(what.events)) / 100 * 100;
    if (io.err.is_terminal()) {
      what.progress = [&io](std::uint64_t done, std::uint64_t of) {
        io.err << "\rfilled " << grouped(done) << " of " << grouped(of) << (done == of ? "\n" : "");
        io.err.flush();
      };
    }
    return tell(io, json, "outbox", bench::measure_outbox(what));
  });
}
#endif

}  // namespace

void add_bench_commands(command root) {
  command group = root.add("bench", "Measure each figure beside its floor, in the same run, as a ratio");
  group.examples("holdfast bench keys\nholdfast bench keys --json | jq '.rows[] | select(.holds | not)'");
  add_bench(group, "keys", "Keys beside the raw hash of the same bytes", bench::key_contests);
  add_bench(group, "failover", "Protected calls beside a key, a codec and a hash map", bench::failover_contests);
  add_store_bench(group);
  add_sequence_bench(group);
#if HOLDFAST_HAS_REDIS
  add_redis_bench(group);
  add_outbox_bench(group);
#endif
}

}  // namespace holdfast::cli
