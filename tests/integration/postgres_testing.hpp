#pragma once

/// \file
/// Helpers for the tests of the PostgreSQL driver.

#include <holdfast/error.hpp>
#include <holdfast/sql.hpp>

#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {

/// Checks that no message contains `secret`, which all passwords and values of these tests contain.
inline void expect_kind(const error& failure, errc code, bool transient, bool in_doubt) {
  EXPECT_EQ(to_string(failure.code()), to_string(code)) << failure.what();
  EXPECT_EQ(failure.transient(), transient) << failure.what();
  EXPECT_EQ(failure.in_doubt(), in_doubt) << failure.what();
  EXPECT_EQ(std::string(failure.what()).find("secret"), std::string::npos) << failure.what();
}

inline sql::outcome execute(sql::connection& c, const sql::statement& s,
                            const std::vector<sql::parameter>& parameters = {}) {
  return c.execute(s, parameters);
}

inline std::int64_t number(sql::connection& c, const std::string& text) {
  return std::get<std::int64_t>(
      execute(c, {.text = text, .results = {sql::type::integer}}).rows.at(0, 0));
}

}  // namespace holdfast::test
