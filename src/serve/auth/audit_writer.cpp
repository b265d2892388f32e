#include "serve/auth/audit_writer.hpp"

#include <holdfast/error.hpp>

#include "base/hex.hpp"
#include "base/utf8.hpp"
#include "serve/api/json_writer.hpp"
#include "serve/auth/token_text.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::size_t audit_batch = 200;
constexpr std::string_view audit_columns =
    "ENTRY_ID, CALLER, ADDRESS, TENANT, ACTION_NAME, SUBJECT, AMOUNT, RESULT_TEXT";

void append_number(std::string& out, std::uint64_t number, unsigned digits) {
  static constexpr std::string_view hex = "0123456789abcdef";
  for (unsigned shift = digits * 4; shift > 0; shift -= 4)
    out += hex[(number >> (shift - 4)) & 15U];
}

/// The smallest id of a time.
std::string first_id(timestamp time) {
  std::string id;
  append_number(id, static_cast<std::uint64_t>(std::max<std::int64_t>(0, to_integer(time))), 16);
  return id;
}

timestamp time_of_id(std::string_view id) {
  std::uint64_t number = 0;
  for (const char c : id.substr(0, 16))
    number = number << 4U | static_cast<unsigned>(std::max(0, hex_digit(c)));
  return to_time(static_cast<std::int64_t>(number & std::numeric_limits<std::int64_t>::max()));
}

/// Text that fits into its column: well-formed, without control characters, of a limited size.
std::string storable(std::string_view text, std::size_t max_size) {
  std::string result;
  while (!text.empty()) {
    const auto size = code_point_size(text);
    const bool control = static_cast<unsigned char>(text.front()) < 0x20 || text.front() == 0x7F;
    const auto part = size == 0 || control ? std::string_view("?") : text.substr(0, size);
    if (result.size() + part.size() > max_size) break;
    result += part;
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return result;
}

void insert_audit(state_session& session, const stored_audit_entry& stored) {
  const auto& entry = stored.entry;
  session.execute("INSERT INTO HOLDFAST_SERVE_AUDIT (" + std::string(audit_columns) +
                      ") VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                  {std::string_view(stored.id), nullable(entry.caller), nullable(entry.address),
                   nullable(entry.tenant), std::string_view(entry.action), nullable(entry.subject),
                   static_cast<std::int64_t>(entry.count), nullable(entry.result)});
}

/// Inserts each entry for itself, and skips those that are there: a batch whose commit was in doubt
/// may have been stored.
void insert_missing(state_session& session, const std::vector<stored_audit_entry>& batch) {
  for (const auto& entry : batch) {
    try {
      insert_audit(session, entry);
    } catch (const error& problem) {
      if (problem.code() != errc::duplicate) throw;
    }
  }
}

void insert_batch(state_session& session, const std::vector<stored_audit_entry>& batch) {
  try {
    session.transact([&] {
      for (const auto& entry : batch) insert_audit(session, entry);
    });
  } catch (const error& problem) {
    if (problem.code() != errc::duplicate) throw;
    insert_missing(session, batch);
  }
}

stored_audit_entry read_audit(const sql::rows& rows, std::size_t row) {
  stored_audit_entry stored{.id = text_of(rows, row, 0)};
  stored.entry = {.time = time_of_id(stored.id),
                  .caller = text_of(rows, row, 1),
                  .address = text_of(rows, row, 2),
                  .tenant = text_of(rows, row, 3),
                  .action = text_of(rows, row, 4),
                  .subject = text_of(rows, row, 5),
                  .count = static_cast<std::uint64_t>(integer_of(rows, row, 6)),
                  .result = text_of(rows, row, 7)};
  return stored;
}

std::string random_process_text() {
  const auto digest = sha256(random_secret());
  return to_hex(std::array<unsigned char, 4>{digest[0], digest[1], digest[2], digest[3]});
}

}  // namespace

audit_writer::audit_writer(parts shared)
    : shared_(std::move(shared)),
      process_(random_process_text()),
      lost_counter_(shared_.metrics->counter(
          "holdfast_serve_audit_lost_total", {},
          "Entries of the audit log that were lost because the state database failed")),
      failures_(shared_.metrics->counter("holdfast_serve_audit_failures_total", {},
                                         "Failed attempts to write the audit log")) {}

/// 16 digits of time, 8 that count, 8 of the process.
std::string audit_writer::next_id(timestamp time) {
  auto id = first_id(time);
  append_number(id, number_++, 8);
  return id + process_;
}

void audit_writer::queue_entry(audit_entry entry) {
  if (entry.time == timestamp{}) entry.time = shared_.clock->now();
  entry.caller = storable(entry.caller, 200);
  entry.address = storable(entry.address, 64);
  entry.tenant = storable(entry.tenant, 128);
  entry.action = storable(entry.action, 64);
  entry.subject = storable(entry.subject, 500);
  entry.result = storable(entry.result, 500);
  entry.count = std::min<std::uint64_t>(entry.count, std::numeric_limits<std::int64_t>::max());
  stored_audit_entry stored{.entry = std::move(entry)};
  std::string json;
  bool fits = true;
  {
    const std::scoped_lock lock(mutex_);
    stored.id = next_id(stored.entry.time);
    json = to_json(stored);
    fits = queue_.size() < audit_queue_size;
    if (fits) queue_.push_back(std::move(stored));
    else ++lost_;
  }
  if (!fits) count_loss("the state database cannot be written");
  if (auto* const events = events_.load()) events->publish("audit", std::move(json));
  if (shared_.on_entry) shared_.on_entry();
}

void audit_writer::record(audit_entry entry) noexcept {
  try {
    queue_entry(std::move(entry));
  } catch (...) {
    count_loss("no memory");
  }
}

void audit_writer::count_loss(std::string_view reason) noexcept {
  lost_counter_->add();
  shared_.log->write_limited("audit.lost", log_level::error,
                             "an entry of the audit log was lost; check the state database",
                             {{"reason", reason}});
}

void audit_writer::write_queue(state_database& database) {
  // The order of the table is that of the ids, so a second writer would do no harm; but both would
  // write the same entries.
  const std::scoped_lock writing(writing_);
  for (;;) {
    std::vector<stored_audit_entry> batch;
    {
      const std::scoped_lock lock(mutex_);
      const auto count = std::min(queue_.size(), audit_batch);
      batch.assign(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
    }
    if (batch.empty()) return;
    try {
      auto session = database.write("audit.write");
      insert_batch(session, batch);
    } catch (const error&) {
      failures_->add();
      throw;
    }
    const std::scoped_lock lock(mutex_);
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(batch.size()));
  }
}

bool audit_writer::is_empty() const {
  const std::scoped_lock lock(mutex_);
  return queue_.empty();
}

std::uint64_t audit_writer::lost() const {
  const std::scoped_lock lock(mutex_);
  return lost_;
}

std::vector<stored_audit_entry> list_audit(state_session& session, const audit_filter& filter,
                                           std::size_t limit) {
  std::string condition = "ENTRY_ID > ''";
  std::vector<sql::parameter> parameters;
  const auto add = [&](std::string_view comparison, std::string_view value) {
    condition.append(" AND ").append(comparison).append(" ?");
    parameters.emplace_back(value);
  };
  const auto begin = filter.begin ? first_id(*filter.begin) : std::string();
  const auto end = filter.end ? first_id(*filter.end) : std::string();
  if (filter.begin) add("ENTRY_ID >=", begin);
  if (filter.end) add("ENTRY_ID <", end);
  if (!filter.after.empty()) add("ENTRY_ID <", filter.after);
  if (!filter.caller.empty()) add("CALLER =", filter.caller);
  if (!filter.tenant.empty()) add("TENANT =", filter.tenant);
  if (!filter.action.empty()) add("ACTION_NAME =", filter.action);
  if (!filter.subject.empty()) add("SUBJECT =", filter.subject);
  parameters.emplace_back(static_cast<std::int64_t>(limit));
  using enum sql::type;
  const auto rows =
      session.query("SELECT " + std::string(audit_columns) + " FROM HOLDFAST_SERVE_AUDIT WHERE " +
                        condition + " ORDER BY ENTRY_ID DESC" + std::string(session.row_limit()),
                    parameters, {text, text, text, text, text, text, integer, text});
  std::vector<stored_audit_entry> entries;
  entries.reserve(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) entries.push_back(read_audit(rows, row));
  return entries;
}

void forget_old_audit(state_session& session, timestamp now) {
  const auto limit = first_id(now - audit_life);
  session.execute("DELETE FROM HOLDFAST_SERVE_AUDIT WHERE ENTRY_ID < ?", {std::string_view(limit)});
}

std::string to_json(const stored_audit_entry& stored) {
  json_writer out;
  out.begin_object()
      .member("id", stored.id)
      .member("at", stored.entry.time)
      .member("caller", stored.entry.caller)
      .member("address", stored.entry.address)
      .member("tenant", stored.entry.tenant)
      .member("action", stored.entry.action)
      .member("subject", stored.entry.subject)
      .member("count", stored.entry.count)
      .member("result", stored.entry.result)
      .end_object();
  return out.take();
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
