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
    if (!replies[i].is_error()) {
      // Each of them is answered so. Whoever sends back what it hears would be believed everything.
      if (replies[i].is_text() && replies[i].text() == "OK") continue;
      throw error(errc::malformed, "what answers at " + address + " does not speak as Redis does; check that a Redis server listens there");
    }
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

connection::arrival::arrival(connection& of, const settings& from)
    : hello(from), what(hello.commands, {.attempts = 1}), words(what, of.address_, of.scripts_) {
  for (const auto each : what.waiting()) words.add(each);
  way = {.over = &of, .what = &words};
}

connection::connection(std::string address, const settings& from, const tls_context* tls, steady::time_point deadline)
    : address_(std::move(address)),
      deadline_(deadline),
      wire_(address_, {.keep_alive = from.how.keep_alive, .tls = tls}, deadline),
      reader_(from.how.max_reply),
      arrival_(std::make_unique<arrival>(*this, from)) {}

bool connection::set_up() {
  if (!arrival_) return true;
  arrival& at = *arrival_;
  const bool first = !at.connected;
  if (first && !wire_.set_up()) return false;
  at.connected = true;
  at.way.waits_for = move_on(at.way, first, deadline_);
  if (at.way.waits_for != 0) {
    if (steady::now() < deadline_) return false;
    throw error(errc::timeout, "Redis at " + address_ + " did not answer in time", {.transient = true});
  }
  // Nothing that matters was sent yet: whatever happened, it is not in doubt.
  if (at.way.problem) throw error(at.way.problem->code(), at.way.problem->message(), {.transient = at.way.problem->transient()});
  at.words.land(nullptr);
  at.hello.check(at.what.take(), address_);
  if (broken_)
    throw error(errc::malformed, "Redis at " + address_ + " answered more than it was asked; check what else writes to its connections");
  arrival_.reset();
  return true;
}

void connection::add_waits(std::vector<pollfd>& to) const {
  if (arrival_->connected) to.push_back({wire_.descriptor(), arrival_->way.waits_for, 0});
  else wire_.add_waits(to);
}

steady::time_point connection::wake_at() const noexcept { return arrival_->connected ? deadline_ : wire_.wake_at(); }

}  // namespace HOLDFAST_NAMESPACE::redis
