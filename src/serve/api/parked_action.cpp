#include "serve/api/parked_action.hpp"

#include <holdfast/error.hpp>

#include "base/uuid.hpp"
#include "serve/api/outbox_scan.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::size_t events_per_step = 500;

/// In one lane.
std::vector<bool> apply(const outbox_service& service, parked_action action, std::size_t lane,
                        std::span<const std::string> ids) {
  auto& backend = *service.outbox.backend();
  return action == parked_action::replay ? backend.replay(lane, ids) : backend.discard(lane, ids);
}

/// One pass over the parked events.
class parked_pass {
 public:
  parked_pass(const outbox_service& service, parked_action action, event_filter filter,
              timestamp began, std::optional<std::uint64_t> at_most)
      : service_(service),
        action_(action),
        filter_(std::move(filter)),
        began_(began),
        remaining_(at_most) {}

  [[nodiscard]] job_step run_step() {
    job_step step;
    std::map<std::size_t, std::vector<outbox_record>> matches;
    std::uint64_t matched = 0;
    do {
      auto page = service_.outbox.admin().scan(scan_what::parked, position_, scan_page_size);
      step.examined += page.records.size();
      for (auto& record : page.records) {
        if (!takes(record) || (remaining_ && matched >= *remaining_)) continue;
        record.details.event.payload.clear();
        ++matched;
        matches[record.details.lane].push_back(std::move(record));
      }
      position_ = std::move(page.after);
      ++pages_;
      step.finished = position_.empty() || (remaining_ && matched >= *remaining_);
      // A lane without parked events is a page, too.
    } while (!step.finished && pages_ % pages_per_step != 0);
    for (const auto& [lane, records] : matches) step.changed += apply_to(lane, records);
    if (remaining_) *remaining_ -= matched;
    return step;
  }

 private:
  static constexpr std::size_t pages_per_step = events_per_step / scan_page_size;

  /// An event that is parked again, after it was replayed, was parked after the beginning.
  [[nodiscard]] bool takes(const outbox_record& record) const {
    return (!record.until || *record.until <= began_) && filter_.matches(record);
  }

  std::uint64_t apply_to(std::size_t lane, const std::vector<outbox_record>& records) {
    std::vector<std::string> ids;
    ids.reserve(records.size());
    for (const auto& record : records) ids.push_back(record.details.event.id);
    const auto results = apply(service_, action_, lane, ids);
    std::uint64_t changed = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i]) continue;
      ++changed;
      if (action_ == parked_action::discard) service_.outbox.drop_payload(records[i].details.event);
    }
    return changed;
  }

  const outbox_service& service_;
  parked_action action_;
  event_filter filter_;
  timestamp began_;
  std::optional<std::uint64_t> remaining_;
  std::string position_{};
  std::size_t pages_ = 0;
};

}  // namespace

std::string_view to_string(parked_action action) noexcept {
  return action == parked_action::replay ? "replay" : "discard";
}

std::vector<bool> apply_to_ids(const outbox_service& service, parked_action action,
                               std::span<const std::string> ids) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!is_uuid(ids[i]))
      throw error(errc::invalid_argument, "is not an event id: use a UUID in lower case",
                  {.path = "ids[" + std::to_string(i) + "]"});
  }
  // The lane of a parked event is not known: its key decides.
  std::vector<bool> done(ids.size());
  for (std::size_t lane = 0; lane < service.outbox.lanes(); ++lane) {
    std::vector<event> events(ids.size());
    if (action == parked_action::discard && service.options.claim_check) {
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (auto record = service.outbox.backend()->find(lane, ids[i]))
          events[i] = std::move(record->details.event);
      }
    }
    const auto results = apply(service, action, lane, ids);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!results[i]) continue;
      done[i] = true;
      if (action == parked_action::discard) service.outbox.drop_payload(events[i]);
    }
  }
  return done;
}

std::function<job_step()> make_parked_step(const outbox_service& service, parked_action action,
                                           event_filter filter, timestamp began,
                                           std::optional<std::uint64_t> at_most) {
  auto pass = std::make_shared<parked_pass>(service, action, std::move(filter), began, at_most);
  return [pass] { return pass->run_step(); };
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
