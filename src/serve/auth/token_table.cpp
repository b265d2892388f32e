#include "serve/auth/token_table.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

token_check judge(std::shared_ptr<const live_token> token, timestamp now) {
  const auto& record = token->record;
  const auto verdict = record.revoked          ? token_verdict::revoked
                       : now >= record.expires ? token_verdict::expired
                                               : token_verdict::usable;
  if (verdict == token_verdict::usable) {
    // More than once in a second is not worth a write to memory that all threads share.
    auto& last_used = token->use->last_used;
    const auto time = to_integer(now);
    if (time - last_used.load(std::memory_order_relaxed) > 1'000'000)
      last_used.store(time, std::memory_order_relaxed);
  }
  return {.verdict = verdict, .token = std::move(token)};
}

}  // namespace

std::shared_ptr<const token_table::map> token_table::tokens() const {
  const std::scoped_lock lock(mutex_);
  return tokens_;
}

bool token_table::is_loaded() const { return tokens() != nullptr; }

bool token_table::has_usable(timestamp now) const {
  const auto all = tokens();
  return all && std::ranges::any_of(
                    *all, [now](const auto& entry) { return entry.second->record.is_usable(now); });
}

token_check token_table::find(std::string_view id, timestamp now) const {
  const auto all = tokens();
  if (!all) return {.verdict = token_verdict::unavailable};
  const auto it = all->find(id);
  if (it == all->end()) return {};
  return judge(it->second, now);
}

token_check token_table::check(std::string_view text, timestamp now) const {
  const auto id = token_id_of(text);
  if (!id) return {};
  const auto all = tokens();
  if (!all) return {.verdict = token_verdict::unavailable};
  const auto digest = sha256(text);
  const auto it = all->find(*id);
  // An unknown id takes as long as a wrong secret.
  const secret_digest& expected = it == all->end() ? secret_digest{} : it->second->digest;
  if (!equal_in_constant_time(digest, expected) || it == all->end()) return {};
  return judge(it->second, now);
}

void token_table::load(state_database& database) {
  const std::scoped_lock loading(load_mutex_);
  const auto earlier = tokens();
  auto session = database.read("token.load");
  auto next = std::make_shared<map>();
  for (auto& stored : list_tokens(session, "", max_tokens * 2)) {
    auto token = std::make_shared<live_token>();
    const auto it = earlier ? earlier->find(stored.record.id) : map::const_iterator{};
    const bool is_known = earlier && it != earlier->end();
    token->use = is_known ? it->second->use : std::make_shared<token_use>();
    token->digest = stored.digest;
    token->record = std::move(stored.record);
    auto id = token->record.id;
    next->emplace(std::move(id), std::move(token));
  }
  const std::scoped_lock lock(mutex_);
  tokens_ = std::move(next);
}

void token_table::store_uses(state_database& database) {
  const std::scoped_lock loading(load_mutex_);
  const auto all = tokens();
  if (!all) return;
  std::vector<std::pair<const live_token*, std::int64_t>> used;
  for (const auto& [id, token] : *all) {
    const auto last_used = token->use->last_used.load(std::memory_order_relaxed);
    if (last_used > token->use->stored) used.emplace_back(token.get(), last_used);
  }
  if (used.empty()) return;
  auto session = database.write("token.used");
  // In the order of ids, as every other server writes them: two do not wait for each other.
  session.transact([&] {
    for (const auto& [token, last_used] : used)
      session.execute(
          "UPDATE HOLDFAST_SERVE_TOKEN SET LAST_USED = ? WHERE TOKEN_ID = ? AND LAST_USED < ?",
          {last_used, std::string_view(token->record.id), last_used});
  });
  for (const auto& [token, last_used] : used) token->use->stored = last_used;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
