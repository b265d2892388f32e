#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/sql.hpp>

#include "outbox/checks.hpp"
#include "outbox/outbox_state.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

joining_outbox_backend& joining(outbox_backend& below) {
  auto* able = dynamic_cast<joining_outbox_backend*>(&below);
  if (able == nullptr) {
    throw error(errc::unsupported_type,
                "this outbox does not live in an SQL database, so it cannot take part in your transaction; on Redis: outbox::commit");
  }
  return *able;
}

}  // namespace

receipt outbox::publish(join::transaction& in, event what) const {
  std::vector<event> one;
  one.push_back(std::move(what));
  return publish_all(in, std::move(one)).front();
}

std::vector<receipt> outbox::publish_all(join::transaction& in, std::vector<event> what) const {
  const auto& own = *state_;
  auto& below = joining(*own.backend);
  for (auto& one : what) own.prepare(one);
  const auto lanes = own.backend->lanes();
  std::vector<std::vector<std::size_t>> places(lanes);
  for (std::size_t i = 0; i < what.size(); ++i)
    places[outboxes::lane_of(what[i].key.empty() ? what[i].id : what[i].key, lanes)].push_back(i);
  std::vector<receipt> result(what.size());
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    if (places[lane].empty()) continue;
    std::vector<event> part;
    part.reserve(places[lane].size());
    for (const auto i : places[lane]) part.push_back(std::move(what[i]));
    auto receipts = below.publish_in(in, lane, part, own.terms());
    for (std::size_t i = 0; i < receipts.size(); ++i) {
      (receipts[i].status == publish_status::added ? own.published : own.duplicates)->add();
      result[places[lane][i]] = std::move(receipts[i]);
    }
  }
  return result;
}

commit_status outbox::effect_once(join::transaction& in, fence token, const claimed_event& what) const {
  return joining(*state_->backend).apply_once(in, what.lane, token, what.event.id, what.event.key, state_->terms());
}

}  // namespace HOLDFAST_NAMESPACE
