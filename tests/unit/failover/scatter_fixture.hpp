#pragma once

#include "support/eventually.hpp"
#include "unit/failover/fixture.hpp"

#include <condition_variable>
#include <map>
#include <set>
#include <span>
#include <thread>

namespace holdfast::test {

/// A world with countries, which can be asked for one by one, by their codes, and by region.
class scatter_test : public failover_test {
 protected:
  scatter_test() {
    for (const char* code : {"FR", "DE", "IT", "ES"}) world[code] = {code, std::string("name of ") + code};
  }

  auto each(point_options options = {.domain = "country", .expiry = 24h}, point_hooks<country> hooks = {}) {
    return with().protect_each(
        "countries-by-codes", options, [this](std::span<const std::string> codes) { return ask(codes); }, std::move(hooks));
  }
  auto single(point_options options = {.domain = "country", .expiry = 24h}) {
    return with().protect("country-by-code", options, [this](const std::string& code) -> std::optional<country> {
      if (down) throw outage("down");
      const auto found = world.find(code);
      return found == world.end() ? std::nullopt : std::optional(found->second);
    });
  }
  /// The countries whose codes begin with the prefix.
  auto list(point_options options = {.domain = "country", .expiry = 24h}, point_hooks<country> hooks = {}) {
    return with().protect_list(
        "countries", options,
        [this](const std::string& prefix) {
          if (down) throw outage("down");
          std::vector<country> found;
          for (const auto& [code, its] : world) {
            if (code.starts_with(prefix)) found.push_back(its);
          }
          return found;
        },
        &country::code, std::move(hooks));
  }
  std::vector<std::optional<country>> ask(std::span<const std::string> codes) {
    ++calls;
    if (down) throw outage("down");
    std::vector<std::optional<country>> found;
    for (const auto& code : codes) {
      const auto its = world.find(code);
      found.push_back(its == world.end() ? std::nullopt : std::optional(its->second));
    }
    return found;
  }
  /// Changes a row behind the engine's back.
  void damage(const std::string& code, const std::function<void(entry&)>& change) {
    auto kept = row(code, "country");
    ASSERT_TRUE(kept);
    change(*kept);
    memory->put(*kept);
  }
  static std::vector<std::string> codes_of(const gathered<std::string, country>& all) {
    std::vector<std::string> codes;
    for (const auto& one : all) codes.push_back(one.id());
    return codes;
  }

  std::map<std::string, country> world{};
};

using codes = std::vector<std::string>;

}  // namespace holdfast::test
