#include "seq_place.hpp"

#include "base/local_host.hpp"
#include "redis/address.hpp"
#include "sql/database.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::cli {

namespace {

bool is_plaintext(const database& opened) {
  const auto& shared = *opened.shared();
  if (shared.pool) return shared.pool->reader()->transport() == sql::transport_kind::plaintext;
#if HOLDFAST_HAS_REDIS
  if (shared.redis) {
    return std::ranges::any_of(shared.redis->probe(), [](const redis::server_report& report) {
      return !report.encrypted && !is_local_host(redis::host_of(report.address));
    });
  }
#endif
  return false;
}

}  // namespace

std::int64_t read_whole(std::string_view option, const std::string& text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || text.empty())
    throw error(errc::invalid_argument, std::string(option) + " is a whole number of 64 bits, not '" + text + "'; change it and try again");
  return value;
}

sequence_place::sequence_place(command& at)
    : database_place(at),
      create(at.flag("--create-schema", "Create the table if it is not there")),
      unsafe(at.flag("--allow-unsafe", "Go on where the settings of the database could make it forget ids that it granted")),
      fence(at.value("--fence", "", "On Redis, what is done about a failover; must be chosen there")
                .one_of({"super", "clock", "wait", "none"})),
      super_store(at.value("--super-store", "URL", "With --fence super: the SQL database that grants the large blocks")) {}

database sequence_place::open_url(console& io, const std::string& which) const {
  database_options options;
  if (unsafe.given()) options.log = [&io](const log_record& record) { io.warn(record.message); };
  // The large blocks of --super-store come from another server, with another password.
  if (which == url.text()) options.password = password.read(io);
  return holdfast::open(url_to_open(which, create.given()), std::move(options));
}

sequence_store_options sequence_place::store_options(console& io) const {
  sequence_store_options made{.prefix = prefix.text(), .create_schema = create.given(), .allow_unsafe = unsafe.given()};
  const bool redis = url.text().starts_with("redis");
  const auto chosen = fence.text();
  if (redis && chosen.empty()) {
    throw error(errc::invalid_argument,
                "a Redis can grant ids twice after a failover; choose --fence super --super-store URL (no duplicates), --fence clock, "
                "--fence wait or --fence none");
  }
  if (!redis && !chosen.empty()) throw error(errc::invalid_argument, "--fence is for Redis; leave it out");
  if (super_store.given() != (chosen == "super"))
    throw error(errc::invalid_argument, "--fence super and --super-store URL go together; give both or neither");
  if (chosen == "super") {
    made.fence =
        super_blocks{.from = open_url(io, super_store.text()).block_store({.prefix = prefix.text(), .create_schema = create.given()})};
  } else if (chosen == "clock") {
    made.fence = clock_fence{};
  } else if (chosen == "wait") {
    made.fence = wait_fence{};
  } else if (chosen == "none") {
    made.fence = no_fence{};
  }
  return made;
}

std::vector<std::string> sequence_place::plaintext_warnings(console& io) const {
  std::vector<std::string> warnings;
  for (const auto& each : {url.text(), super_store.text()}) {
    if (each.empty() || !is_plaintext(open_url(io, each))) continue;
    warnings.emplace_back(
        "the connection to another machine is not encrypted: the login and the ids can be read and changed on the way; "
        "set up TLS, see docs/tls.md");
  }
  return warnings;
}

sequence_shape::sequence_shape(command& at)
    : name(at.value("--name", "N", "The sequence: account.id").required()),
      start(at.value("--start", "ID", "Its first id (default 1)")),
      increment(at.value("--increment", "I", "From one id to the next (default 1); negative: downwards")),
      max(at.value("--max", "ID", "No id is higher")),
      min(at.value("--min", "ID", "No id is lower")) {}

sequence_options sequence_shape::options(const sequence_place& place, console& io) const {
  // Who only looks leases nothing, so any size will do.
  sequence_options made{.blocks = fixed_blocks{.size = 1}, .store = place.store_options(io)};
  if (start.given()) made.start = read_whole("--start", start.text());
  if (increment.given()) made.increment = read_whole("--increment", increment.text());
  if (max.given()) made.max = read_whole("--max", max.text());
  if (min.given()) made.min = read_whole("--min", min.text());
  return made;
}

}  // namespace holdfast::cli
