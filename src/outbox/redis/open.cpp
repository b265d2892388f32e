// Opening an outbox on Redis: checks of servers, slots and layout.

#include <holdfast/error.hpp>
#include <holdfast/key/redis.hpp>

#include "outbox/default_prefix.hpp"
#include "outbox/opening.hpp"
#include "outbox/redis/backend.hpp"
#include "outbox/redis/schema.hpp"
#include "redis/schema_number.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

constexpr std::string_view layout_version = "1";
/// Requirements that are remembered as verified. More are checked at each call.
constexpr std::size_t most_verified = 16;

[[noreturn]] void refuse_to_open(const std::string& message) {
  throw error(errc::invalid_argument, message);
}

void check_server(const redis::server_report& server, const durability& required,
                  bool allow_eviction) {
  const std::string name = "Redis " + server.address;
  if (!allow_eviction && !server.eviction.empty() && server.eviction != "noeviction") {
    refuse_to_open(name + " evicts keys when its memory is full (maxmemory-policy " +
                   server.eviction +
                   "), events included; run CONFIG SET maxmemory-policy noeviction, or set "
                   "allow_eviction (--allow-unsafe)");
  }
  const bool needs_disk = required.level == durability::kind::fsynced;
  // Checked before the append-only file: turning that on would not help.
  if (needs_disk && !server.can_wait_disk) {
    refuse_to_open(name + " " + server.version +
                   " has no WAITAOF, which came with Redis 7.2; ask for aof or replicated instead");
  }
  const bool needs_sync = required.level == durability::kind::always;
  if ((required.level == durability::kind::aof || needs_disk || needs_sync) && !server.aof) {
    refuse_to_open(name + " has no append-only file, so it cannot provide the durability '" +
                   std::string(to_string(required.level)) + "'; run CONFIG SET appendonly yes");
  }
  if (needs_sync && server.appendfsync != "always") {
    refuse_to_open(name + " does not sync its append-only file before it replies (appendfsync " +
                   (server.appendfsync.empty() ? "is unknown" : server.appendfsync) +
                   "), so it cannot provide the durability 'always'; run CONFIG SET appendfsync "
                   "always");
  }
  const bool needs_replicas = required.level == durability::kind::replicated || needs_disk;
  if (needs_replicas && server.replicas < required.replicas) {
    refuse_to_open(name + " has " + std::to_string(server.replicas) + " of the " +
                   std::to_string(required.replicas) +
                   " replicas that must confirm; connect more replicas, or require fewer");
  }
}

/// Throws if the key holds something that an outbox does not write. Returns whether it exists.
bool check_type(const redis::client& client, const std::string& key, std::string_view expected) {
  const auto type = client.call(redis::command("TYPE").key(key).idempotent()).text();
  if (type == expected || type == "none") return type != "none";
  refuse_to_open("the key '" + key + "' holds a " + type +
                 ", which an outbox does not write; choose another prefix, or delete the key");
}

}  // namespace

redis_backend::redis_backend(std::shared_ptr<const redis::client> client,
                             const outbox_options& options, std::string_view time,
                             std::shared_ptr<const logger> log)
    : client_(std::move(client)),
      log_(std::move(log)),
      lane_count_(options.lanes),
      chooses_prefix_(options.prefix.empty()),
      prefix_(options.prefix),
      scripts_(time),
      allow_eviction_(options.allow_eviction) {
  if (!chooses_prefix_) lanes_ = make_lanes(prefix_, lane_count_);
}

const redis::client& redis_backend::client() const {
  open_at_first_use(first_use_, [this] {
    choose_prefix();
    check_slots();
    check_layout();
  });
  return *client_;
}

std::string redis_backend::prefix() {
  if (chooses_prefix_) (void)client();
  return prefix_;
}

bool redis_backend::outbox_exists(std::string_view prefix) const {
  const auto exists = [&](const std::string& key) {
    return client_->call(redis::command("EXISTS").key(key).idempotent()).integer() != 0;
  };
  try {
    if (exists(meta_key(prefix))) return true;
    // An outbox that has lost this hash.
    return std::ranges::any_of(make_lanes(prefix, lane_count_), [&](const redis_lane& lane) {
      return exists(lane[redis_lane::entries]);
    });
  } catch (const error& problem) {
    // A user who may not read it cannot have used it.
    if (problem.code() == errc::permission) return false;
    throw;
  }
}

void redis_backend::choose_prefix() const {
  if (!chooses_prefix_) return;
  const default_outboxes existing{.current = outbox_exists(default_prefix),
                                  .former = outbox_exists(former_default_prefix)};
  prefix_ = choose_default_prefix(existing);
  lanes_ = make_lanes(prefix_, lane_count_);
  log_default_prefix(log_.get(), existing);
}

std::optional<error> redis_backend::health() noexcept {
  try {
    return client().health();
  } catch (const error& problem) {
    return problem;
  } catch (...) {
    return client_->health();  // out of memory
  }
}

void redis_backend::check_supported(const durability& required) const {
  if (required.level == durability::kind::replicated && required.replicas == 0)
    refuse_to_open(
        "the durability 'replicated' with 0 replicas is no better than 'memory'; set replicas");
  if (required.timeout.count() < 1)
    refuse_to_open("the timeout of a durability must be positive: Redis waits without limit for 0");
}

void redis_backend::require(const durability& required) {
  check_supported(required);
  {
    const std::scoped_lock guard(mutex_);
    if (std::find(verified_.begin(), verified_.end(), required) != verified_.end()) return;
  }
  std::string lazy_sync;
  for (const auto& node : client_->nodes()) {
    if (!node.master || (node.slots == 0 && client_->is_cluster())) continue;
    const auto server = client_->probe(node.address);
    check_server(server, required, allow_eviction_);
    if (server.appendfsync != "always") lazy_sync = server.appendfsync;
  }
  const std::scoped_lock guard(mutex_);
  lazy_sync_ = std::move(lazy_sync);
  if (verified_.size() < most_verified) verified_.push_back(required);
}

std::string redis_backend::caution(const durability& required) const {
  const std::scoped_lock guard(mutex_);
  if (required.level != durability::kind::aof || lazy_sync_.empty()) return {};
  return "the durability 'aof' with appendfsync " + lazy_sync_ +
         " can lose acknowledged events of the last seconds when the server ends; run CONFIG SET "
         "appendfsync always, and require the durability 'always'";
}

void redis_backend::check_slots() const {
  if (!client_->is_cluster()) return;
  for (const auto& lane : lanes_) {
    std::vector<redis::command> questions;
    questions.reserve(lane.keys.size());
    for (const auto& key : lane.keys)
      questions.push_back(redis::command("CLUSTER").arg("KEYSLOT").arg(key).idempotent());
    const auto replies = client_->pipeline(questions);
    for (std::size_t i = 0; i < lane.keys.size(); ++i) {
      if (replies.at(i).integer() == key::redis_slot(lane.keys.at(i))) continue;
      refuse_to_open("this Cluster maps the key '" + lane.keys.at(i) +
                     "' to another slot than Redis does; an outbox cannot run on it");
    }
  }
}

void redis_backend::check_layout() const {
  const std::string meta = meta_key(prefix_);
  const auto lane_count = std::to_string(lane_count_);
  const auto read_meta = [&] {
    return client_
        ->call(
            redis::command("HMGET").key(meta).arg("layout").arg("lanes").arg("schema").idempotent())
        .elements();
  };
  (void)check_type(*client_, meta, "hash");
  auto recorded = read_meta();
  // Written only if it is missing: a server whose memory is full refuses writes, and its outbox
  // must still be opened and drained.
  if (recorded.at(0).is_nil() || recorded.at(1).is_nil()) {
    bool has_events = false;
    for (const auto& lane : lanes_) {
      has_events |= check_type(*client_, lane[redis_lane::entries], "hash");
      has_events |= check_type(*client_, lane[redis_lane::pending], "zset");
    }
    const auto record = [&](std::string_view field, std::string_view value) {
      (void)client_->call(redis::command("HSETNX").key(meta).arg(field).arg(value).idempotent());
    };
    record("layout", layout_version);
    record("lanes", lane_count);
    // Events without this hash have lost it, and with it their version: 1 works with all of them.
    if (!has_events) record("schema", std::to_string(current_outbox_schema));
    recorded = read_meta();
  }
  const std::string name = "the outbox '" + prefix_ + "' has ";
  // A text that is not a number was damaged. It must not keep a repair from opening the outbox.
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  };
  if (const auto& layout = recorded.at(0).text(); is_number(layout) && layout != layout_version) {
    refuse_to_open(name + "layout " + layout + ", but this version of Holdfast knows only layout " +
                   std::string(layout_version) + "; use the version that created it");
  }
  const auto& schema = recorded.at(2);
  if (!schema.is_nil() && is_number(schema.text()))
    check_outbox_schema(prefix_, detail::redis::schema_number(schema));
  if (const auto& lanes = recorded.at(1).text(); is_number(lanes) && lanes != lane_count) {
    refuse_to_open(name + lanes + (lanes == "1" ? " lane" : " lanes") + ", not " + lane_count +
                   ", which is fixed when the outbox is created; give --lanes " + lanes +
                   ", or outbox_options::lanes");
  }
}

// The outbox is open: its layout and lanes were right when it was opened, or damaged.
std::uint64_t redis_backend::check_layout_fields(bool repair) const {
  const std::string meta = prefix_ + ":meta";
  std::uint64_t damaged = 0;
  const auto check_field = [&](std::string_view field, std::string_view value) {
    const auto stored = client_->call(redis::command("HGET").key(meta).arg(field).idempotent());
    if (!stored.is_nil() && stored.text() == value) return;
    ++damaged;
    if (repair)
      (void)client_->call(redis::command("HSET").key(meta).arg(field).arg(value).idempotent());
  };
  check_field("layout", layout_version);
  check_field("lanes", std::to_string(lanes_.size()));
  // An outbox without this field has version 1; a later version never lacks it.
  const auto schema = client_->call(redis::command("HGET").key(meta).arg("schema").idempotent());
  if (!schema.is_nil()) check_field("schema", std::to_string(current_outbox_schema));
  return damaged;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
