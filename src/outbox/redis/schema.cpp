#include "outbox/redis/schema.hpp"

#include <holdfast/error.hpp>

#include "outbox/default_prefix.hpp"
#include "redis/schema_number.hpp"

#include <bit>
#include <charconv>
#include <system_error>

namespace HOLDFAST_NAMESPACE::detail::outbox {

std::string meta_key(std::string_view prefix) { return std::string(prefix) + ":meta"; }

void check_outbox_schema(std::string_view prefix, int version) {
  if (version >= oldest_outbox_schema && version <= current_outbox_schema) return;
  const std::string begin = "the outbox '" + std::string(prefix) + "' has schema version " +
                            std::to_string(version) +
                            ", but this program (Holdfast " HOLDFAST_VERSION_STRING ") ";
  if (version > current_outbox_schema)
    throw error(errc::unsupported_type, begin + "knows versions up to " +
                                            std::to_string(current_outbox_schema) +
                                            "; update the program");
  std::string command = "holdfast schema upgrade URL";
  if (prefix != default_prefix) command += " --outbox-prefix '" + std::string(prefix) + "'";
  throw error(errc::unsupported_type, begin + "needs at least version " +
                                          std::to_string(oldest_outbox_schema) +
                                          "; run: " + command);
}

std::optional<int> read_outbox_schema(const holdfast::redis::client& client,
                                      std::string_view prefix) {
  const auto fields = client
                          .call(holdfast::redis::command("HMGET")
                                    .key(meta_key(prefix))
                                    .arg("layout")
                                    .arg("schema")
                                    .idempotent())
                          .elements();
  if (fields.at(0).is_nil() && fields.at(1).is_nil()) return std::nullopt;
  return redis::schema_number(fields.at(1));
}

std::size_t read_lane_count(const holdfast::redis::client& client, std::string_view prefix) {
  const auto lanes =
      client.call(holdfast::redis::command("HGET").key(meta_key(prefix)).arg("lanes").idempotent());
  if (lanes.is_nil()) return 1;
  const auto& text = lanes.text();
  std::size_t count = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool is_number = failure == std::errc{} && end == text.data() + text.size();
  return is_number && std::has_single_bit(count) ? count : 1;
}

void upgrade_redis_outbox(const holdfast::redis::client& client, std::string_view prefix) {
  const auto version = read_outbox_schema(client, prefix);
  if (!version) return;
  if (*version > current_outbox_schema) check_outbox_schema(prefix, *version);
  // The changes of later versions go here, each followed by its HSET.
  (void)client.call(holdfast::redis::command("HSET")
                        .key(meta_key(prefix))
                        .arg("schema")
                        .arg(current_outbox_schema)
                        .idempotent());
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
