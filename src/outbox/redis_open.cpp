#include <holdfast/error.hpp>
#include <holdfast/key/redis.hpp>

#include "outbox/redis_backend.hpp"
#include "outbox/redis_words.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::outboxes {

using redis::command;

namespace {

constexpr std::string_view layout_version = "1";

[[noreturn]] void refuse_server(const std::string& why) { throw error(errc::invalid_argument, why); }

void check_server(const redis::server_report& server, const durability& how, bool allow_eviction) {
  const std::string name = "Redis " + server.address;
  if (!allow_eviction && !server.eviction.empty() && server.eviction != "noeviction") {
    refuse_server(name + " throws keys away when its memory is full (maxmemory-policy " + server.eviction +
                  "), events too; say CONFIG SET maxmemory-policy noeviction, or set allow_eviction (--allow-unsafe)");
  }
  const bool disk = how.level == durability::kind::fsynced;
  // Before the file: a server that is told to keep one would be refused all the same.
  if (disk && !server.can_wait_disk)
    refuse_server(name + " " + server.version + " has no WAITAOF, which came with Redis 7.2; ask for aof or replicated instead");
  if ((how.level == durability::kind::aof || disk) && !server.aof) {
    refuse_server(name + " keeps no append-only file, so it cannot be '" + std::string(to_string(how.level)) +
                  "'; say CONFIG SET appendonly yes");
  }
  if ((how.level == durability::kind::replicated || disk) && server.replicas < how.replicas) {
    refuse_server(name + " has " + std::to_string(server.replicas) + " of the " + std::to_string(how.replicas) +
                  " replicas that have to confirm; connect them, or ask for less");
  }
}

}  // namespace

redis_backend::redis_backend(std::shared_ptr<const redis::client> client, const outbox_options& options, std::string_view time)
    : client_(std::move(client)),
      lanes_(make_lanes(options.prefix, options.lanes)),
      scripts_(time),
      allow_eviction_(options.allow_eviction) {
  require(options.safe);
  check_slots();
  note_layout(options.prefix);
}

void redis_backend::require(const durability& how) {
  if (how.level == durability::kind::replicated && how.replicas == 0)
    refuse_server("replicated to 0 replicas is no more than memory; say how many");
  if (how.timeout.count() < 1) refuse_server("the timeout of a durability is 0: that would be for ever");
  {
    const std::scoped_lock lock(mutex_);
    if (std::find(verified_.begin(), verified_.end(), how) != verified_.end()) return;
  }
  for (const auto& node : client_->nodes()) {
    if (node.master && (node.slots > 0 || !client_->is_cluster())) check_server(client_->probe(node.address), how, allow_eviction_);
  }
  const std::scoped_lock lock(mutex_);
  if (verified_.size() < 16) verified_.push_back(how);
}

void redis_backend::check_slots() const {
  if (!client_->is_cluster()) return;
  for (const auto& lane : lanes_) {
    std::vector<command> questions;
    questions.reserve(lane.keys.size());
    for (const auto& key : lane.keys) questions.push_back(command("CLUSTER").arg("KEYSLOT").arg(key).idempotent());
    const auto answers = client_->pipeline(questions);
    for (std::size_t i = 0; i < lane.keys.size(); ++i) {
      if (answers.at(i).integer() == key::redis_slot(lane.keys.at(i))) continue;
      refuse_server("this Cluster puts the key '" + lane.keys.at(i) + "' into another slot than Redis does; an outbox cannot be kept here");
    }
  }
}

void redis_backend::note_layout(std::string_view prefix) {
  const std::string meta = std::string(prefix) + ":meta";
  const auto wanted = std::to_string(lanes_.size());
  const auto read = [&] { return client_->call(command("HMGET").key(meta).arg("layout").arg("lanes").idempotent()).elements(); };
  const auto expect = [&](const std::string& key, std::string_view type) {
    const auto kind = client_->call(command("TYPE").key(key).idempotent()).text();
    if (kind != type && kind != "none") {
      refuse_server("the key '" + key + "' holds a " + kind +
                    ", which no outbox wrote; choose another prefix, or remove what is kept there");
    }
  };
  expect(meta, "hash");
  auto noted = read();
  // Only where nothing is noted: a server whose memory is full would refuse to write, and must be drained all the same.
  if (noted.at(0).is_nil() || noted.at(1).is_nil()) {
    for (const auto& lane : lanes_) {
      expect(lane[redis_lane::entries], "hash");
      expect(lane[redis_lane::pending], "zset");
    }
    (void)client_->call(command("HSETNX").key(meta).arg("layout").arg(layout_version).idempotent());
    (void)client_->call(command("HSETNX").key(meta).arg("lanes").arg(wanted).idempotent());
    noted = read();
  }
  if (noted.at(0).text() != layout_version) {
    refuse_server("the outbox '" + std::string(prefix) + "' has the layout " + noted.at(0).text() +
                  ", not 1; use the Holdfast that made it");
  }
  if (noted.at(1).text() != wanted) {
    refuse_server("the outbox '" + std::string(prefix) + "' has " + noted.at(1).text() + " lanes, not " + wanted +
                  ": their number is fixed when it is made");
  }
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
