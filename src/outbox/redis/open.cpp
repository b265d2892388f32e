// Opening an outbox on Redis: checks of servers, slots and layout.

#include <holdfast/error.hpp>
#include <holdfast/key/redis.hpp>

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
  if ((required.level == durability::kind::aof || needs_disk) && !server.aof) {
    refuse_to_open(name + " has no append-only file, so it cannot provide the durability '" +
                   std::string(to_string(required.level)) + "'; run CONFIG SET appendonly yes");
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
                             const outbox_options& options, std::string_view time)
    : client_(std::move(client)),
      lanes_(make_lanes(options.prefix, options.lanes)),
      scripts_(time),
      prefix_(options.prefix),
      allow_eviction_(options.allow_eviction) {}

const redis::client& redis_backend::client() const {
  open_at_first_use(first_use_, [this] {
    check_slots();
    check_layout();
  });
  return *client_;
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
  for (const auto& node : client_->nodes()) {
    if (node.master && (node.slots > 0 || !client_->is_cluster()))
      check_server(client_->probe(node.address), required, allow_eviction_);
  }
  const std::scoped_lock guard(mutex_);
  if (verified_.size() < most_verified) verified_.push_back(required);
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
  const auto lane_count = std::to_string(lanes_.size());
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
  if (const auto& layout = recorded.at(0).text(); layout != layout_version) {
    refuse_to_open(name + "layout " + layout + ", but this version of Holdfast knows only layout " +
                   std::string(layout_version) + "; use the version that created it");
  }
  check_outbox_schema(prefix_, detail::redis::schema_number(recorded.at(2)));
  if (const auto& lanes = recorded.at(1).text(); lanes != lane_count) {
    refuse_to_open(name + lanes + " lanes, not " + lane_count +
                   "; the number of lanes is fixed when the outbox is created");
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
