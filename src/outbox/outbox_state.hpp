#pragma once

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>

#include "outbox/checks.hpp"

#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE {

/// What the copies of an outbox share.
struct outbox::state {
  std::shared_ptr<outbox_backend> backend;
  outbox_options options;
  std::shared_ptr<isolated_metrics> metrics;
  std::shared_ptr<const logger> log;

  std::shared_ptr<metrics::counter> published, duplicates, refused, in_doubt, handed_out, acked, retried, parked, stale, fired;

  [[nodiscard]] publish_terms terms(const durability& how) const {
    return {.how = how, .quota = options.quota, .dedup_window = options.dedup_window, .dedup_limit = options.dedup_limit};
  }
  [[nodiscard]] publish_terms terms() const { return terms(options.safe); }

  void count_metrics() {
    const auto make = [&](std::string_view name, std::string_view help) { return metrics->counter(name, {}, help); };
    published = make("holdfast_outbox_published_total", "Events that were added");
    duplicates = make("holdfast_outbox_duplicates_total", "Events that were published again");
    refused = make("holdfast_outbox_refused_total", "Events that were refused");
    in_doubt = make("holdfast_outbox_publish_in_doubt_total", "Events whose publishing is in doubt");
    handed_out = make("holdfast_outbox_claimed_total", "Events handed out");
    acked = make("holdfast_outbox_acked_total", "Events delivered and forgotten");
    retried = make("holdfast_outbox_retried_total", "Events to be tried again");
    parked = make("holdfast_outbox_parked_total", "Events kept aside");
    stale = make("holdfast_outbox_stale_total", "Settlements refused since the lease was lost");
    fired = make("holdfast_outbox_fired_total", "Tickets that became events");
  }
  void check_lane(std::size_t lane) const {
    if (lane < backend->lanes()) return;
    throw error(errc::invalid_argument,
                "there is no lane " + std::to_string(lane) + ": the outbox has " + std::to_string(backend->lanes()));
  }
  void check_batch(std::string_view what, std::size_t size) const {
    if (size != 0 && size <= outboxes::most_in_a_call) return;
    throw error(errc::invalid_argument, std::string(what) + " is " + std::to_string(size) + "; 1 to 1000 are possible");
  }
  void prepare(event& what) const;
  void fetch(event& what) const;
};

}  // namespace HOLDFAST_NAMESPACE
