#include "redis/connection.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::redis {

greeting::greeting(const settings& from) {
  const auto& how = from.how;
  if (!how.user.empty() || !how.password.empty()) {  // a user may have an empty password
    command login("AUTH");
    if (!how.user.empty()) login.arg(how.user);
    commands.push_back(std::move(login.arg(how.password)));
  }
  if (from.database != 0) commands.push_back(command("SELECT").arg(from.database));
  // Always something: a server that is frozen accepts connections, and must be found out before a command is sent to it.
  commands.push_back(command("CLIENT").arg("SETNAME").arg(how.client_name.empty() ? "holdfast" : how.client_name));
}

void greeting::check(std::span<const reply> replies, const std::string& address) const {
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (!replies[i].is_error()) continue;
    const error& why = replies[i].problem();
    const bool last = i + 1 == replies.size();
    if (last && why.code() != errc::permission && !why.transient() && why.code() != errc::unavailable && why.code() != errc::timeout)
      continue;                                            // a name is a courtesy
    if (last && why.backend_code() == "NOPERM") continue;  // so is the right to give one
    // A server without AUTH repeats what it was told, the password too: "unknown command 'AUTH', with args beginning with: ..."
    throw error(why.code(), "Redis at " + address + " does not let us in: " + why.message().substr(0, why.message().find(", with args")),
                {.backend_code = why.backend_code(), .transient = why.transient()});
  }
}

connection::connection(std::string address, const settings& from, const tls_context* tls, steady::time_point deadline)
    : address_(std::move(address)),
      wire_(address_, {.keep_alive = from.how.keep_alive, .tls = tls}, deadline),
      reader_(from.how.max_reply) {
  const greeting hello(from);
  delivery what(hello.commands, {.attempts = 1});
  flight first(what, address_, scripts_);
  for (const auto each : what.waiting()) first.add(each);
  leg only{.over = this, .what = &first};
  carry({&only, 1}, deadline);
  // Nothing that matters was sent yet: whatever happened, it is not in doubt.
  if (only.problem) throw error(only.problem->code(), only.problem->message(), {.transient = only.problem->transient()});
  first.land(nullptr);
  hello.check(what.take(), address_);
}

}  // namespace HOLDFAST_NAMESPACE::redis
