#pragma once

/// \file
/// A worker that parks the first event of a key, is to park those behind it, too, and does not live
/// to do so: on every backend of the outbox.

#include <holdfast/outbox.hpp>

#include "support/child_process.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <span>

namespace holdfast::test {

/// What the worker does; gives the exit code of one that lived.
inline int park_half_and_die(const outbox& box) {
  const auto got = box.claim();
  if (got.events.size() != 1) return 2;
  const settlement park{.id = got.events[0].event.id,
                        .key = "k",
                        .action = settlement::kind::park,
                        .error = "bad",
                        .policy = park_policy::park};
  if (box.backend()->settle(0, got.fence, std::span(&park, 1), {}, {}).keys_to_park.size() != 1)
    return 3;
  return std::raise(SIGKILL);
}

/// `start` starts that worker on the same outbox.
template <class Start>
void whoever_claims_next_parks_the_rest(const outbox& box, Start start) {
  for (int i = 0; i < 3; ++i) (void)box.publish({.type = "t", .key = "k"});
  child_process half(start());
  EXPECT_TRUE(half.wait(std::chrono::seconds(20)).value_or(exit_status{}).signalled);
  EXPECT_EQ(box.admin().stats().parked, 1U);
  (void)box.publish({.type = "t", .key = "other"});
  EXPECT_EQ(box.claim().events.size(), 1U) << "of the other key";
  EXPECT_EQ(box.admin().stats().parked, 3U);
  (void)box.publish({.type = "t", .key = "k", .payload = "later"});
  const auto got = box.claim();
  ASSERT_EQ(got.events.size(), 1U) << "the key is free";
  EXPECT_EQ(got.events[0].event.payload, "later");
  EXPECT_TRUE(box.admin().check().well());
}

}  // namespace holdfast::test
