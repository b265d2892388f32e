#include "commands/seq/location.hpp"

#include "base/local_host.hpp"
#include "database/database.hpp"
#include "net/address.hpp"
#include "sequence/definition.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>
#include <variant>

namespace holdfast::cli {

namespace {

bool is_plaintext(const database& db) {
  const auto& state = *db.shared();
  if (state.sql)
    return state.sql->pool.acquire_reader("sequence.transport")->transport() ==
           sql::transport_kind::plaintext;
#if HOLDFAST_HAS_REDIS
  if (state.redis) {
    return std::ranges::any_of(state.redis->probe(), [](const redis::server_report& report) {
      return !report.encrypted && !detail::is_local_host(detail::net::host_of(report.address));
    });
  }
#endif
  return false;
}

}  // namespace

std::int64_t parse_integer(std::string_view option, const std::string& text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || text.empty())
    throw error(errc::invalid_argument,
                std::string(option) + " is '" + text + "'; give an integer of 64 bits");
  return value;
}

sequence_location::sequence_location(command& cmd)
    : database_location(cmd, "HOLDFAST_SEQUENCE"),
      create(cmd.flag("--create-schema", "Create the table if it does not exist")),
      unsafe(
          cmd.flag("--allow-unsafe",
                   "Continue if the settings of the database could lose granted ids in a crash")),
      fence(cmd.value("--fence", "",
                      "On Redis (required there): protection against duplicates after a failover")
                .one_of({"super", "clock", "wait", "none"})),
      super_store(cmd.value("--super-store", "URL",
                            "With --fence super: SQL database that grants large blocks")) {}

database sequence_location::open_url(console& io, const std::string& database_url) const {
  database_options options;
  if (unsafe.is_set()) options.log = io.sink();
  // The server of --super-store has another password.
  if (database_url == url.text()) options.password = password.read(io);
  return holdfast::open(url_to_open(database_url, create.is_set()), std::move(options));
}

sequence_store_options sequence_location::store_options(console& io) const {
  sequence_store_options options{
      .prefix = prefix.text(), .create_schema = create.is_set(), .allow_unsafe = unsafe.is_set()};
  const bool redis = url.text().starts_with("redis");
  const auto chosen = fence.text();
  if (redis && chosen.empty()) {
    throw error(
        errc::invalid_argument,
        "Redis can grant ids twice after a failover; choose --fence super --super-store URL (no "
        "duplicates), --fence clock, --fence wait or --fence none");
  }
  if (!redis && !chosen.empty())
    throw error(errc::invalid_argument, "--fence is only for Redis; remove it");
  if (super_store.is_set() != (chosen == "super"))
    throw error(errc::invalid_argument,
                "--fence super and --super-store URL require each other; give both or neither");
  if (chosen == "super") {
    options.fence = super_blocks{
        .source = open_url(io, super_store.text())
                      .block_store({.prefix = prefix.text(), .create_schema = create.is_set()})};
  } else if (chosen == "clock") {
    options.fence = clock_fence{};
  } else if (chosen == "wait") {
    options.fence = wait_fence{};
  } else if (chosen == "none") {
    options.fence = no_fence{};
  }
  return options;
}

void sequence_location::read_fence(const std::string& definition, sequence_store_options& options) {
  const auto number = [&](const char* field, std::int64_t other) {
    const auto text = detail::sequence::definition_field(definition, field);
    return text ? parse_integer(field, *text) : other;
  };
  options.failover_skip = number("failover_skip", options.failover_skip);
  if (auto* clock = std::get_if<clock_fence>(&options.fence)) {
    clock->rate = number("rate", clock->rate);
    clock->max_skew = std::chrono::milliseconds(number("max_skew", clock->max_skew.count()));
    clock->origin = std::chrono::sys_seconds(
        std::chrono::seconds(number("origin", clock->origin.time_since_epoch().count())));
  } else if (auto* wait = std::get_if<wait_fence>(&options.fence)) {
    wait->replicas =
        static_cast<std::size_t>(number("replicas", static_cast<std::int64_t>(wait->replicas)));
    wait->on_disk = detail::sequence::definition_field(definition, "on_disk") == "yes";
  }
}

std::vector<std::string> sequence_location::plaintext_warnings(console& io) const {
  std::vector<std::string> warnings;
  for (const auto& database_url : {url.text(), super_store.text()}) {
    if (database_url.empty() || !is_plaintext(open_url(io, database_url))) continue;
    warnings.emplace_back(
        "the connection to another machine is not encrypted: the login and the ids can be read and "
        "changed on the way; set up TLS, see docs/tls.md");
  }
  return warnings;
}

sequence_definition::sequence_definition(command& cmd)
    : name(cmd.value("--name", "N", "Name of the sequence: account.id").required()),
      start(cmd.value("--start", "ID", "First id (default 1)")),
      increment(cmd.value("--increment", "I",
                          "Difference between ids (default 1); negative to count down")),
      max(cmd.value("--max", "ID", "Highest id")),
      min(cmd.value("--min", "ID", "Lowest id")) {}

sequence_options sequence_definition::options(const sequence_location& location,
                                              console& io) const {
  auto options = new_options(location, io);
  const auto stored =
      location.open_database(io).block_store(options.store)->definition(name.text());
  if (!stored) return options;
  detail::sequence::read_definition(*stored, options);
  sequence_location::read_fence(*stored, options.store);
  add_options(options);
  return options;
}

sequence_options sequence_definition::new_options(const sequence_location& location,
                                                  console& io) const {
  // Commands that only read lease no block, so any size works. `next` sets another one.
  sequence_options options{.blocks = fixed_blocks{.size = 1}, .store = location.store_options(io)};
  add_options(options);
  return options;
}

void sequence_definition::add_options(sequence_options& options) const {
  if (start.is_set()) options.start = parse_integer("--start", start.text());
  if (increment.is_set()) options.increment = parse_integer("--increment", increment.text());
  if (max.is_set()) options.max = parse_integer("--max", max.text());
  if (min.is_set()) options.min = parse_integer("--min", min.text());
}

}  // namespace holdfast::cli
