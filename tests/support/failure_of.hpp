#pragma once

#include <holdfast/error.hpp>

#include <gtest/gtest.h>

namespace holdfast::test {

/// What an action throws; a failure of the test when it throws nothing.
template <class Action>
error failure_of(Action action) {
  try {
    action();
  } catch (const error& problem) {
    return problem;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {errc::internal, "nothing was thrown"};
}

}  // namespace holdfast::test
