#include <holdfast/outbox/relay.hpp>

#include <utility>

namespace HOLDFAST_NAMESPACE::relay {

event_handler redis_stream(redis::client to, std::string stream, std::size_t limit) {
  return [to = std::move(to), stream = std::move(stream), limit](const delivery& what) {
    redis::command add("XADD");
    add.key(stream);
    if (limit > 0) add.arg("MAXLEN").arg("~").arg(limit);
    const auto& about = what.event();
    add.arg("*").arg("id").arg(about.id).arg("type").arg(about.type).arg("key").arg(about.key).arg("event").arg(to_json(what));
    // A lost reply is in doubt, and so the outcome is ambiguous: it is appended again, and the receiver knows it by its id.
    to.call(add);
    return outcome::done();
  };
}

}  // namespace HOLDFAST_NAMESPACE::relay
