// The handler that appends events to a Redis stream. Only in builds with Redis.

#include <holdfast/outbox/relay.hpp>

#include <utility>

namespace HOLDFAST_NAMESPACE::relay {

event_handler redis_stream(redis::client client, std::string stream, std::size_t limit) {
  return [client = std::move(client), stream = std::move(stream), limit](const delivery& delivery) {
    const auto& event = delivery.event();
    redis::command add("XADD");
    add.key(stream);
    if (limit > 0) add.arg("MAXLEN").arg("~").arg(limit);
    add.arg("*");
    add.arg("id").arg(event.id);
    add.arg("type").arg(event.type);
    add.arg("key").arg(event.key);
    add.arg("event").arg(to_json(delivery));
    // A lost reply throws an error in doubt, so the outcome is ambiguous and the event is appended
    // again. The receiver recognises it by its id.
    client.call(add);
    return outcome::done();
  };
}

}  // namespace HOLDFAST_NAMESPACE::relay
