#include "sequence/redis/counters.hpp"

#include "sequence/definition.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sequence {

namespace {

using holdfast::redis::reply;

void check_key_prefix(std::string_view prefix) {
  const auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == ':' || c == '-';
  };
  if (prefix.size() > 128 || !std::ranges::all_of(prefix, allowed))
    throw error(errc::invalid_argument,
                "the prefix of keys is at most 128 of the characters A-Z a-z 0-9 _ . : -",
                {.path = "prefix"});
}

std::int64_t parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || value < 0)
    throw error(errc::malformed, "Redis returned '" + std::string(text) +
                                     "' as the value of a counter; check its key");
  return value;
}

}  // namespace

redis_counters::redis_counters(std::shared_ptr<const holdfast::redis::client> client,
                               const std::string& prefix)
    : client_(std::move(client)), key_begin_(prefix + "holdfast:seq:{") {
  check_key_prefix(prefix);
}

holdfast::redis::command redis_counters::command(const holdfast::redis::script& script,
                                                 std::string_view name) const {
  return holdfast::redis::command(script).key(key(name));
}

std::string redis_counters::node_of(std::string_view name) const {
  return client_->node_of(key(name));
}

std::string redis_counters::key(std::string_view name) const {
  return std::string(key_begin_).append(name).append("}");
}

std::vector<std::string> redis_counters::names() const {
  std::set<std::string> names;  // SCAN may return a key twice
  for (const auto& node : client_->nodes()) {
    if (!node.master) continue;
    std::string cursor = "0";
    do {
      const auto page = client_
                            ->call(holdfast::redis::command("SCAN")
                                       .arg(cursor)
                                       .arg("MATCH")
                                       .arg(key_begin_ + "*}")
                                       .arg("COUNT")
                                       .arg(1000)
                                       .idempotent(),
                                   {.node = node.address})
                            .elements();
      for (const auto& element : page.at(1).elements()) {
        const auto& key = element.text();
        names.insert(key.substr(key_begin_.size(), key.size() - key_begin_.size() - 1));
      }
      cursor = page.at(0).text();
    } while (cursor != "0");
  }
  return {names.begin(), names.end()};
}

counter_state counter_state_of(const reply& reply) {
  const auto& fields = reply.elements();
  return {.last = parse_number(fields.at(0).text()), .epoch = parse_number(fields.at(1).text())};
}

block_grant block_grant_of(const reply& reply, std::string_view name, std::string_view definition) {
  const auto& fields = reply.checked().elements();
  const auto& status = fields.at(0).text();
  if (status == "granted") {
    return {.block = sequence_block(parse_number(fields.at(1).text()),
                                    parse_number(fields.at(2).text())),
            .epoch = parse_number(fields.at(3).text())};
  }
  if (status == "end") return {.epoch = parse_number(fields.at(1).text())};
  if (status == "wait") {
    const auto milliseconds = (parse_number(fields.at(1).text()) + 999) / 1000;
    throw error(errc::unavailable,
                "the counter waits for the clock (clock_fence); the next block can be granted in " +
                    std::to_string(milliseconds) + " ms",
                {.transient = true});
  }
  if (status == "differs") throw definition_mismatch(name, fields.at(1).text(), definition);
  throw error(errc::malformed, "the script of the sequence returned '" + status + "'");
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
