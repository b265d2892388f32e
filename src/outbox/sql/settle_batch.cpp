#include "outbox/sql/settle_batch.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

settle_batch::settle_batch(event_rows_by_id rows, fence token, std::int64_t now_ms)
    : rows_(std::move(rows)), token_(token), now_ms_(now_ms) {
  for (const auto& [id, row] : rows_) {
    if (row.queue && row.head == row.seq && row.state == row_state::queued)
      heads_.emplace(*row.queue, key_head{.seq = row.seq,
                                          .token = row.token,
                                          .run_length = row.run_length,
                                          .due = row.due.value_or(now_ms)});
  }
}

bool settle_batch::is_held(const event_row& row, std::string_view key) const {
  if (token_ == 0 || row.key != key || row.state != row_state::queued) return false;
  if (key.empty()) return row.token == token_;
  const auto head = heads_.find(key);
  return head != heads_.end() && head->second.seq == row.seq && head->second.token == token_;
}

/// The same settlement came before, and its answer, with the key whose followers are to be parked,
/// was lost.
bool settle_batch::repeats_parking(const event_row& row, const settlement& settlement) const {
  return settlement.action == settlement::kind::park && settlement.policy == park_policy::park &&
         row.state == row_state::blocking && row.key == settlement.key && token_ != 0 &&
         row.parked_by == token_;
}

void settle_batch::apply(const settlement& settlement) {
  const auto position = rows_.find(settlement.id);
  const bool held = position != rows_.end() && is_held(position->second, settlement.key);
  done.push_back(held);
  if (!held) {
    ++changes.stale;
    if (position != rows_.end() && repeats_parking(position->second, settlement))
      keys_to_park.push_back(settlement.key);
    return;
  }
  auto row = std::move(position->second);
  rows_.erase(position);
  row.last_token = std::max(row.last_token, token_);
  // A follower of the run counts as delivered when it becomes the head.
  if (!row.key.empty() && promotions.contains(row.key)) ++row.deliveries;
  switch (settlement.action) {
    case settlement::kind::ack:
      acknowledge(row);
      break;
    case settlement::kind::release:
      release(std::move(row));
      break;
    case settlement::kind::retry:
      retry(std::move(row), settlement);
      break;
    case settlement::kind::park:
      park(std::move(row), settlement);
      break;
  }
}

void settle_batch::acknowledge(const event_row& row) {
  ++changes.acked;
  --changes.events;
  changes.bytes -= row.bytes;
  delivered_seqs.push_back(row.seq);
  delivered_ids.push_back(row.id);
  remove_head(row);
  if (row.next != 0 && promotions.find(row.key)->second.run_length == 0)
    completed_keys.push_back(row.key);
}

void settle_batch::release(event_row row) {
  stop_run(row);
  row.token = 0;
  row.run_length = 0;
  row.deliveries = std::max<std::int64_t>(0, row.deliveries - 1);
  row.due = row.state_time = now_ms_;
  changed.push_back(std::move(row));
}

void settle_batch::retry(event_row row, const settlement& settlement) {
  stop_run(row);
  row.token = 0;
  row.run_length = 0;
  if (settlement.counts) ++row.attempts;
  else if (row.deliveries > 0) --row.deliveries;
  row.last_error = settlement.error;
  row.due = row.state_time = now_ms_ + settlement.delay.count();
  ++changes.retried;
  changed.push_back(std::move(row));
}

void settle_batch::park(event_row row, const settlement& settlement) {
  row.token = 0;
  row.run_length = 0;
  if (settlement.counts) ++row.attempts;
  row.last_error = settlement.error;
  row.due.reset();
  row.state = row_state::parked;
  row.state_time = now_ms_;
  ++changes.parkings;
  const bool parks_followers = settlement.policy == park_policy::park && row.next != 0;
  const bool blocks_key = settlement.policy == park_policy::block || parks_followers;
  if (row.key.empty() || !blocks_key) {
    row.queue.reset();
    remove_head(row);
    changed.push_back(std::move(row));
    return;
  }
  stop_run(row);
  heads_.erase(row.key);
  row.state = row_state::blocking;
  if (parks_followers) {
    row.parked_by = token_;
    row.due = now_ms_;
    keys_to_park.push_back(row.key);
    rows_.emplace(row.id, row);  // a second settlement of the same event gets the same answer
  }
  changed.push_back(std::move(row));
}

/// The head leaves its queue. The rest of its run keeps token and lease. An event without a key is
/// in no queue.
void settle_batch::remove_head(const event_row& row) {
  if (row.key.empty()) return;
  const auto head = heads_.find(row.key);
  const auto due = head->second.due;
  const auto rest = std::max<std::int64_t>(head->second.run_length - 1, 0);
  promotions[row.key] = {.token = token_, .run_length = rest, .due = due};
  if (row.next == 0) heads_.erase(head);
  else
    head->second = {
        .seq = row.next, .token = rest > 0 ? token_ : 0, .run_length = rest, .due = due};
}

/// The head stays in its queue, and the claim of its run ends.
void settle_batch::stop_run(const event_row& row) {
  const auto head = heads_.find(row.key);
  if (head == heads_.end()) return;  // no key
  head->second.token = 0;
  head->second.run_length = 0;
  promotions.erase(row.key);
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
