#include "serve/auth/session_table.hpp"

#include "base/hex.hpp"
#include "serve/auth/state_tables.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// Another process may have a later use of a session that it did not store yet.
constexpr auto unstored_use = std::chrono::minutes(5);

void delete_session(state_session& session, const secret_digest& id) {
  const auto hash = to_hex(id);
  session.transact([&] {
    session.execute("DELETE FROM HOLDFAST_SERVE_SESSION WHERE HASH = ?", {std::string_view(hash)});
    count_change(session, "session");
  });
}

}  // namespace

std::shared_ptr<const session_table::map> session_table::sessions() const {
  const std::scoped_lock lock(mutex_);
  return sessions_;
}

void session_table::replace(std::shared_ptr<const map> sessions) {
  const std::scoped_lock lock(mutex_);
  sessions_ = std::move(sessions);
}

std::string session_table::start(state_database& database, std::string token_id, std::string name) {
  auto cookie = random_secret();
  const auto id = sha256(cookie);
  const auto hash = to_hex(id);
  const auto now = database.clock().now();
  auto live = std::make_shared<live_session>();
  live->session = {.token_id = std::move(token_id), .name = std::move(name), .created = now};
  live->last_seen = to_integer(now);
  live->stored = to_integer(now);

  const std::scoped_lock loading(load_mutex_);
  auto next = std::make_shared<map>(*sessions());
  auto session = database.write("session.start");
  if (next->size() >= max_sessions) remove_idlest(session, *next);
  session.transact([&] {
    session.execute(
        "INSERT INTO HOLDFAST_SERVE_SESSION (HASH, TOKEN_ID, NAME, CREATED_ON, LAST_SEEN) VALUES "
        "(?, ?, ?, ?, ?)",
        {std::string_view(hash), nullable(live->session.token_id),
         std::string_view(live->session.name), to_integer(now), to_integer(now)});
    count_change(session, "session");
  });
  next->emplace(id, std::move(live));
  replace(std::move(next));
  return cookie;
}

void session_table::remove_idlest(state_session& session, map& sessions) {
  const auto idlest = std::ranges::min_element(
      sessions, {}, [](const auto& entry) { return entry.second->last_seen.load(); });
  idlest->second->ended = true;
  delete_session(session, idlest->first);
  sessions.erase(idlest);
}

std::optional<console_session> session_table::find(std::string_view cookie, timestamp now) const {
  if (cookie.size() != secret_size) return std::nullopt;
  const auto all = sessions();
  // The hash of a guess tells nothing about other hashes, so the time of this lookup does not
  // matter.
  const auto it = all->find(sha256(cookie));
  if (it == all->end()) return std::nullopt;
  auto& live = *it->second;
  const auto last_seen = live.last_seen.load(std::memory_order_relaxed);
  if (live.ended || now >= live.session.end() || now - to_time(last_seen) >= session_idle_time)
    return std::nullopt;
  if (to_integer(now) - last_seen > 1'000'000)
    live.last_seen.store(to_integer(now), std::memory_order_relaxed);
  return live.session;
}

void session_table::end(state_database& database, std::string_view cookie) {
  const auto all = sessions();
  const auto it = all->find(sha256(cookie));
  if (it == all->end()) return;
  it->second->ended = true;
  auto session = database.write("session.end");
  delete_session(session, it->first);
}

void session_table::load(state_database& database) {
  const std::scoped_lock loading(load_mutex_);
  const auto earlier = sessions();
  auto session = database.write("session.load");
  const auto rows = session.query(
      "SELECT HASH, TOKEN_ID, NAME, CREATED_ON, LAST_SEEN FROM HOLDFAST_SERVE_SESSION ORDER BY "
      "LAST_SEEN DESC" +
          std::string(session.row_limit()),
      {static_cast<std::int64_t>(max_sessions) * 2},
      {sql::type::text, sql::type::text, sql::type::text, sql::type::integer, sql::type::integer});
  auto next = std::make_shared<map>();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    secret_digest id{};
    const auto hash = text_of(rows, row, 0);
    if (hash.size() != id.size() * 2 || !from_hex(hash, id.data())) continue;
    const auto it = earlier->find(id);
    if (it != earlier->end() && it->second->ended) {
      delete_session(session, id);
      continue;
    }
    auto live = it == earlier->end() ? std::make_shared<live_session>() : it->second;
    if (it == earlier->end())
      live->session = {.token_id = text_of(rows, row, 1),
                       .name = text_of(rows, row, 2),
                       .created = to_time(integer_of(rows, row, 3))};
    const auto last_seen = integer_of(rows, row, 4);
    live->stored = std::max(live->stored, last_seen);
    if (last_seen > live->last_seen.load()) live->last_seen = last_seen;
    next->emplace(id, std::move(live));
  }
  replace(std::move(next));
}

void session_table::store_uses(state_database& database) {
  const std::scoped_lock loading(load_mutex_);
  const auto all = sessions();
  struct session_use {
    live_session* session;
    std::string hash;
    std::int64_t last_seen;
  };
  std::vector<session_use> used;
  for (const auto& [id, live] : *all) {
    const auto last_seen = live->last_seen.load(std::memory_order_relaxed);
    if (last_seen > live->stored && !live->ended)
      used.push_back({live.get(), to_hex(id), last_seen});
  }
  if (used.empty()) return;
  auto session = database.write("session.used");
  // In the order of hashes, as every other server writes them.
  session.transact([&] {
    for (const auto& use : used)
      session.execute(
          "UPDATE HOLDFAST_SERVE_SESSION SET LAST_SEEN = ? WHERE HASH = ? AND LAST_SEEN < ?",
          {use.last_seen, std::string_view(use.hash), use.last_seen});
  });
  for (const auto& use : used) use.session->stored = use.last_seen;
}

void session_table::forget_old_sessions(state_session& session, timestamp now) {
  session.execute(
      "DELETE FROM HOLDFAST_SERVE_SESSION WHERE LAST_SEEN < ? OR CREATED_ON < ?",
      {to_integer(now - session_idle_time - unstored_use), to_integer(now - session_life)});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
