#pragma once

#include "support/eventually.hpp"
#include "unit/failover/fixture.hpp"

#include <condition_variable>
#include <map>
#include <set>
#include <span>
#include <thread>

namespace holdfast::test {

/// Countries that can be requested one by one, by their codes, and by a prefix.
class scatter_test : public failover_test {
 protected:
  scatter_test() {
    for (const char* code : {"FR", "DE", "IT", "ES"})
      world[code] = {code, std::string("name of ") + code};
  }

  auto each(point_options options = {.domain = "country", .expiry = 24h},
            point_hooks<country> hooks = {}) {
    return current_engine().protect_each(
        "countries-by-codes", options,
        [this](std::span<const std::string> codes) { return ask(codes); }, std::move(hooks));
  }
  auto single(point_options options = {.domain = "country", .expiry = 24h}) {
    return current_engine().protect(
        "country-by-code", options, [this](const std::string& code) -> std::optional<country> {
          if (down) throw outage("down");
          const auto item = world.find(code);
          return item == world.end() ? std::nullopt : std::optional(item->second);
        });
  }
  /// The countries whose codes begin with the prefix.
  auto list(point_options options = {.domain = "country", .expiry = 24h},
            point_hooks<country> hooks = {}) {
    return current_engine().protect_list(
        "countries", options,
        [this](const std::string& prefix) {
          if (down) throw outage("down");
          std::vector<country> results;
          for (const auto& [code, item] : world) {
            if (code.starts_with(prefix)) results.push_back(item);
          }
          return results;
        },
        &country::code, std::move(hooks));
  }
  std::vector<std::optional<country>> ask(std::span<const std::string> codes) {
    ++calls;
    if (down) throw outage("down");
    std::vector<std::optional<country>> results;
    for (const auto& code : codes) {
      const auto item = world.find(code);
      results.push_back(item == world.end() ? std::nullopt : std::optional(item->second));
    }
    return results;
  }
  /// Changes a row without the engine.
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
