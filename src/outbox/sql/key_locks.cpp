#include "outbox/sql/key_locks.hpp"

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// FNV-1a, folded.
std::uint64_t stripe_hash(std::string_view text) noexcept {
  std::uint64_t sum = 0xcbf29ce484222325U;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return sum ^ (sum >> 32U);
}

}  // namespace

std::int64_t stripe_of(std::string_view key) noexcept {
  return static_cast<std::int64_t>(stripe_hash(key) % std::uint64_t{stripe_count});
}

key_locks::key_locks(const statement_builder& builder, key_order order)
    : lock_class_(static_cast<std::int64_t>(stripe_hash(builder.tables().events) & 0x7FFFFFFFU)),
      enabled_(order == key_order::locked) {
  using enum sql::type;
  if (!enabled_) return;
  const row_list stripes{"stripes", {{"stripe"}}};
  if (builder.postgres()) {
    lock_ = builder.statement(
        "SELECT COUNT(*) FROM (SELECT pg_advisory_xact_lock(:class::int, k.stripe::int) FROM "
        "(SELECT DISTINCT g.stripe FROM " +
            builder.rows(stripes) + " ORDER BY 1) k OFFSET 0) l",
        {integer});
    try_lock_ = builder.statement(
        "SELECT k.stripe FROM (SELECT DISTINCT g.stripe FROM " + builder.rows(stripes) +
            " OFFSET 0) k WHERE pg_try_advisory_xact_lock(:class::int, k.stripe::int)",
        {integer});
  } else if (builder.mysql()) {
    const std::string select = "SELECT o.N " + builder.join("{stripes}", "N", stripes);
    lock_ = builder.statement(select + " ORDER BY o.N {for_update}", {integer});
    try_lock_ = builder.statement(select + " {skip_locked}", {integer});
    if (builder.locks() == lock_scope::server) return;
    erase_ = builder.statement(builder.erase("{stripes}", "N", stripes));
    restore_ = builder.statement("INSERT INTO {stripes} (N) SELECT g.stripe FROM " +
                                 builder.rows(stripes) + builder.keep_existing("N"));
  }
}

void key_locks::lock(const lane_session& session, const stripe_set& stripes) const {
  if (!lock_ || stripes.empty()) return;
  if (erase_) return rewrite(session, stripes);
  (void)lock_->query(session, {{"class", lock_class_}, {"stripes", json_column(stripes)}});
}

stripe_set key_locks::try_lock(const lane_session& session, const stripe_set& stripes) const {
  if (!try_lock_ || stripes.empty()) return stripes;
  const auto locked = integers(
      try_lock_->query(session, {{"class", lock_class_}, {"stripes", json_column(stripes)}}));
  const stripe_set result(locked.begin(), locked.end());
  if (erase_ && !result.empty()) rewrite(session, result);
  return result;
}

void key_locks::rewrite(const lane_session& session, const stripe_set& stripes) const {
  const auto list = json_column(stripes);
  for (const auto* statement : {&erase_, &restore_}) {
    if (*statement) (*statement)->execute(session, {{"stripes", list}});
  }
}

std::string key_locks::stripe_array(const stripe_set& stripes) const {
  return array_of(enabled_ ? stripes : stripe_set{});
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
