#pragma once

#include "failover/config_plan.hpp"
#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

namespace holdfast::test {

/// Plans from text, with an environment of its own.
class config_test : public ::testing::Test {
 protected:
  config::plan planned(std::string_view text, engine_options base = {}) {
    return config::make_plan("app.toml", text, std::move(base), [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      if (found == variables.end()) return std::nullopt;
      return found->second;
    });
  }
  /// Everything that is wrong with it.
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
  point_options point(const config::plan& from, std::string_view name, point_options options = {}) {
    from.points->apply(name, options);
    return options;
  }
  static bool warns(const config::plan& from, std::string_view text) {
    for (const auto& each : from.warnings) {
      if (each.find(text) != std::string::npos) return true;
    }
    return false;
  }

  std::map<std::string, std::string> variables{};
};

}  // namespace holdfast::test
