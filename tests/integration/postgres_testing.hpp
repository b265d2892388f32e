#pragma once

/// \file
/// What the tests of the PostgreSQL driver share.

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

/// Every password and every delicate value of these tests is spelled `secret`.
inline void expect_kind(const error& problem, errc code, bool transient, bool in_doubt) {
  EXPECT_EQ(to_string(problem.code()), to_string(code)) << problem.what();
  EXPECT_EQ(problem.transient(), transient) << problem.what();
  EXPECT_EQ(problem.in_doubt(), in_doubt) << problem.what();
  EXPECT_EQ(std::string(problem.what()).find("secret"), std::string::npos) << problem.what();
}

inline sql::outcome execute(sql::connection& c, const sql::statement& s, const std::vector<sql::parameter>& parameters = {}) {
  return c.execute(s, parameters);
}

inline std::int64_t number(sql::connection& c, const std::string& text) {
  return std::get<std::int64_t>(execute(c, {.text = text, .results = {sql::type::integer}}).rows.at(0, 0));
}

}  // namespace holdfast::test
