// Countries, three ways: one by its code, many by their codes, and the list of a region. They share
// a domain, so each feeds the others.

#include <holdfast/holdfast.hpp>
#include <holdfast/nlohmann.hpp>

#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace app {

struct country {
  std::string code;
  std::string name;
  std::string region;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(country, code, name, region)

/// Stands for a service on the network.
struct client {
  std::map<std::string, country> all{{"DE", {"DE", "Germany", "EU"}},
                                     {"FR", {"FR", "France", "EU"}},
                                     {"JP", {"JP", "Japan", "Asia"}}};
  bool up = true;

  void connect() const {
    if (!up) throw std::runtime_error("connection refused");
  }
  [[nodiscard]] std::optional<country> fetch(const std::string& code) const {
    connect();
    const auto found = all.find(code);
    return found == all.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] std::vector<std::optional<country>> fetch_all(
      std::span<const std::string> codes) const {
    connect();
    std::vector<std::optional<country>> found;
    for (const auto& code : codes) found.push_back(fetch(code));
    return found;
  }
  [[nodiscard]] std::vector<country> fetch_region(const std::string& region) const {
    connect();
    std::vector<country> found;
    for (const auto& each : all) {
      if (each.second.region == region) found.push_back(each.second);
    }
    return found;
  }
};

}  // namespace app

namespace {

const char* text(holdfast::completeness complete) {
  switch (complete) {
    case holdfast::completeness::yes:
      return "complete";
    case holdfast::completeness::no:
      return "not complete";
    case holdfast::completeness::unknown:
      return "perhaps complete";
  }
  return "?";
}

}  // namespace

int main() {
  using namespace std::chrono_literals;
  const auto client = std::make_shared<app::client>();
  const auto db = holdfast::open("memory:");

  // region points
  holdfast::engine engine{db.store()};
  const holdfast::point_options country{.domain = "country", .expiry = 24h};

  auto by_code = engine.protect("country-by-code", country,
                                [client](const std::string& code) { return client->fetch(code); });

  auto by_codes = engine.protect_each(
      "countries-by-codes", country,
      [client](std::span<const std::string> codes) { return client->fetch_all(codes); });

  auto by_region = engine.protect_list(
      "countries-by-region", country,
      [client](const std::string& region) { return client->fetch_region(region); },
      &app::country::code);
  // endregion

  (void)by_codes({"FR", "XX"});
  (void)by_region("EU");
  client->up = false;

  std::cout << "# each\n";
  // region each
  const auto some = by_codes({"JP", "FR", "XX"});
  for (const auto& item : some) {
    std::cout << item.id() << ": ";
    if (item.missing()) std::cout << "unknown\n";
    else if (!item.has_value()) std::cout << "does not exist\n";
    else std::cout << item->name << (item.stale() ? ", stale" : ", live") << '\n';
  }
  std::cout << text(some.complete()) << ", " << some.missing() << " missing\n";
  // endregion

  std::cout << "# domain\n";
  // region domain
  std::cout << by_code("DE")->name << '\n';  // the list of the region brought it
  // endregion

  std::cout << "# list\n";
  // region list
  const auto europe = by_region("EU");
  for (const auto& item : europe) std::cout << item->name << '\n';
  std::cout << text(europe.complete()) << '\n';
  try {
    (void)by_region("Asia");  // never asked before: rows of the domain are no answer
  } catch (const std::exception& e) {
    std::cout << "Asia: " << e.what() << '\n';
  }
  // endregion

  std::cout << "# deleted\n";
  client->up = true;
  client->all.erase("DE");
  (void)by_region("EU");
  client->up = false;
  // region deleted
  // Germany left the list, and does not come back
  for (const auto& item : by_region("EU")) std::cout << item->name << '\n';
  // endregion

  std::cout << "# split\n";
  client->up = true;
  // region split
  // An answer in a shape of its own: names by code. Each name is a row, as if it had been asked for
  // alone.
  using names = std::map<std::string, std::string>;
  using codes = std::vector<std::string>;
  holdfast::splitter<names(codes), std::string, std::string> by_name{
      .on_store =
          [](const names& whole, const codes&) {
            std::vector<holdfast::stored_slice<std::string, std::string>> slices;
            for (const auto& [code, name] : whole) slices.push_back({code, name});
            return slices;
          },
      .on_recover =
          [](const codes& asked) {
            return std::vector<std::tuple<std::string>>(asked.begin(), asked.end());
          },
      .merge = [](auto slices, const codes&) -> std::optional<names> {
        names whole;
        for (auto& slice : slices) {
          if (slice.value && slice.args) whole[std::get<0>(*slice.args)] = *slice.value;
        }
        return whole;
      }};
  auto names_of = engine.protect_split(
      "country-names",
      {.scatter = holdfast::scatter_options{.partial = holdfast::partial::at_least(1)}}, by_name,
      [client](codes asked) {
        names found;
        for (const auto& code : asked) found[code] = client->fetch(code).value().name;
        return found;
      });
  // endregion
  (void)names_of({"FR"});
  client->up = false;
  const auto partly = names_of({"FR", "JP"});
  for (const auto& [code, name] : *partly) std::cout << code << ": " << name << '\n';
  std::cout << text(partly.complete()) << '\n';
}
