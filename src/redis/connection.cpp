#include "redis/connection.hpp"

#include <poll.h>

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::detail::redis {

namespace {

/// The first element of the reply to ROLE: master, slave or sentinel. Empty if it is not known.
std::string role_in(const reply& answer) {
  if (!answer.is_list() || answer.elements().empty() || !answer.elements().front().is_text())
    return {};
  const auto& role = answer.elements().front().text();
  return role == "master" || role == "slave" || role == "sentinel" ? role : std::string();
}

void check_role(expected_role expected, const std::string& role, const std::string& address) {
  if (role.empty()) return;
  if (role == "sentinel" && expected != expected_role::sentinel)
    throw error(errc::invalid_argument,
                "Redis at " + address + " is a Sentinel: write redis+sentinel://" + address +
                    "/mymaster, with the name of the master that it monitors");
  if (role != "sentinel" && expected == expected_role::sentinel)
    throw error(errc::invalid_argument,
                "Redis at " + address +
                    " is not a Sentinel; name Sentinels, or write redis:// instead of "
                    "redis+sentinel://");
  if (role != "master" && expected == expected_role::master)
    throw error(errc::unavailable, "Redis at " + address + " is a replica, not the master",
                {.backend_code = "READONLY", .transient = true});
}

[[noreturn]] void throw_refused_login(const error& problem, const std::string& address) {
  // A server without AUTH repeats the arguments, and so the password: "unknown command 'AUTH', with
  // args beginning with: ..."
  throw error(problem.code(),
              "Redis at " + address + " refused the login: " +
                  problem.message().substr(0, problem.message().find(", with args")),
              {.backend_code = problem.backend_code(), .transient = problem.transient()});
}

}  // namespace

login::login(const settings& configured) : role(configured.role) {
  const auto& options = configured.options;
  if (!options.user.empty() || !options.password.empty()) {  // a user may have an empty password
    command auth("AUTH");
    if (!options.user.empty()) auth.arg(options.user);
    commands.push_back(std::move(auth.arg(options.password)));
  }
  if (configured.database != 0) commands.push_back(command("SELECT").arg(configured.database));
  // Every connection starts with at least this command. A frozen server accepts connections, and
  // the missing reply shows that before a command of the caller is sent.
  commands.push_back(command("CLIENT").arg("SETNAME").arg(
      options.client_name.empty() ? "holdfast" : options.client_name));
  if (role != expected_role::any) commands.emplace_back("ROLE");
}

void login::check(std::span<const reply> replies, const std::string& address) const {
  if (role != expected_role::any) {
    check_role(role, role_in(replies.back()), address);
    replies = replies.first(replies.size() - 1);
  }
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (!replies[i].is_error()) {
      // An echo service would also answer every command, but not with OK.
      if (replies[i].is_text() && replies[i].text() == "OK") continue;
      throw error(errc::malformed, "the server at " + address +
                                       " did not answer as Redis does; check that a Redis server "
                                       "listens there");
    }
    const error& problem = replies[i].problem();
    const bool is_set_name = i + 1 == replies.size();
    const bool fatal = problem.code() == errc::permission || problem.transient() ||
                       problem.code() == errc::unavailable || problem.code() == errc::timeout;
    // The name of the connection is optional, and so is the permission to set it.
    if (is_set_name && (!fatal || problem.backend_code() == "NOPERM")) continue;
    throw_refused_login(problem, address);
  }
}

connection::pending_login::pending_login(const settings& configured, const std::string& address,
                                         known_scripts& scripts)
    : steps(configured), requests(steps.commands, {.attempts = 1}), sent(requests, address) {
  for (request* each : requests.take_waiting()) sent.add(*each);
  sent.encode(scripts);
}

connection::connection(const std::string& address, const settings& configured,
                       const net::tls_context* tls, steady::time_point deadline, bool first_contact)
    : address_(address),
      first_contact_(first_contact),
      deadline_(deadline),
      stream_(address_,
              {.service = "Redis", .keep_alive = configured.options.keep_alive, .tls = tls},
              deadline),
      reader_(configured.options.max_reply),
      login_(std::make_unique<pending_login>(configured, address_, scripts_)) {
  if (tls != nullptr) plaintext_check_.emplace(address_, deadline);
}

bool connection::set_up() {
  if (!login_) return true;
  const bool just_connected = !login_->connected;
  if (just_connected && !stream_.set_up()) {
    if (plaintext_check_ && stream_.in_handshake()) plaintext_check_->advance();
    return false;
  }
  plaintext_check_.reset();
  login_->connected = true;
  const short send_events = send(login_->sent, deadline_);
  // A reply cannot have arrived at once.
  const short receive_events = just_connected ? short{POLLIN} : receive_login();
  if (receive_events != 0) {
    login_->events = static_cast<short>(send_events | receive_events);
    if (steady::now() < deadline_) return false;
    throw error(errc::timeout, "Redis at " + address_ + " did not answer in time",
                {.transient = true});
  }
  login_->sent.settle(nullptr);
  login_->steps.check(login_->requests.take_replies(), address_);
  if (!reusable_)
    throw error(errc::malformed,
                "Redis at " + address_ +
                    " sent more replies than there were commands; check what else writes to its "
                    "connections");
  login_.reset();
  return true;
}

/// Receives the replies to the login. A server that accepts no more connections sends one error and
/// closes the connection: that error is the reason.
short connection::receive_login() {
  try {
    return receive(login_->sent, deadline_);
  } catch (const error&) {
    const request& first = login_->requests.at(0);
    if (first.received > 0 && first.replies.front().is_error())
      throw_refused_login(first.replies.front().problem(), address_);
    throw;
  }
}

void connection::add_polls(std::vector<pollfd>& polls) const {
  if (login_->connected) polls.push_back({stream_.descriptor(), login_->events, 0});
  else stream_.add_polls(polls);
  if (plaintext_check_) plaintext_check_->add_polls(polls);
}

steady::time_point connection::wake_at() const noexcept {
  if (login_->connected) return deadline_;
  return plaintext_check_ && stream_.in_handshake()
             ? std::min(stream_.wake_at(), plaintext_check_->wake_at())
             : stream_.wake_at();
}

short connection::send(batch& requests, steady::time_point deadline) {
  reusable_ = false;  // until all replies have arrived
  while (!requests.unsent().empty()) {
    // After the deadline the caller has given up: a command sent now could only be in doubt.
    if (steady::now() >= deadline) return POLLOUT;
    const auto result = stream_.write(requests.unsent());
    switch (result.status) {
      case net::io_status::done:
        requests.mark_sent(result.bytes);
        break;
      case net::io_status::wait_write:
        return POLLOUT;
      case net::io_status::wait_read:
      case net::io_status::closed:
        // Replies that arrived before the close can still be read. `receive` reports the close.
        return POLLIN;
    }
  }
  return 0;
}

void connection::throw_closed() const {
  // A server that expects TLS closes the connection as soon as it has read the first command.
  const bool expects_tls = first_contact_ && !received_ && !stream_.uses_tls();
  throw error(errc::unavailable,
              "the connection to Redis at " + address_ + " was lost: " + stream_.close_reason() +
                  (expects_tls ? "; the server probably expects TLS, because it closed the "
                                 "connection without an answer: write rediss://"
                               : ""),
              {.transient = true});
}

short connection::receive(batch& requests, steady::time_point deadline) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): written before it is read
  std::array<char, std::size_t{32} * 1024> buffer;
  for (;;) {
    const auto result = stream_.read(buffer);
    if (result.status == net::io_status::wait_read) return POLLIN;
    if (result.status == net::io_status::wait_write) return POLLOUT;
    if (result.status == net::io_status::closed) throw_closed();
    received_ = true;
    reader_.feed({buffer.data(), result.bytes});
    while (auto answer = reader_.next()) {
      // After an unexpected reply the connection is not reusable.
      if (!requests.add_reply(std::move(*answer))) return 0;
    }
    if (requests.complete()) {
      reusable_ = reader_.empty();
      return 0;
    }
    // A server that never stops sending must not move the deadline.
    if (steady::now() >= deadline) return POLLIN;
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
