#pragma once

#include "failover/config/plan.hpp"
#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

namespace holdfast::test {

namespace config = detail::failover::config;

/// Makes plans from text, with its own environment variables.
class config_test : public ::testing::Test {
 protected:
  config::plan planned(std::string_view text, engine_options base = {}) {
    return config::make_plan("app.toml", text, std::move(base),
                             [this](const std::string& name) -> std::optional<std::string> {
                               const auto variable = variables.find(name);
                               if (variable == variables.end()) return std::nullopt;
                               return variable->second;
                             });
  }
  /// The problems of a file in one text; "nothing" if it has none.
  std::string refused(std::string_view text) {
    try {
      (void)planned(text);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
      EXPECT_EQ(e.path(), "app.toml");
      return e.message();
    }
    return "nothing";
  }
  point_options point(const config::plan& plan, std::string_view name, point_options options = {}) {
    plan.points->apply(name, options);
    return options;
  }
  static bool warns(const config::plan& plan, std::string_view text) {
    for (const auto& warning : plan.warnings) {
      if (warning.find(text) != std::string::npos) return true;
    }
    return false;
  }

  std::map<std::string, std::string> variables{};
};

}  // namespace holdfast::test
