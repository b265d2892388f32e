// Tenants: a service for several customers, configured by a file. Each tenant has its own table and
// is never served an answer of another one. Calls of tenants that are not listed are not protected.

#include <holdfast/holdfast.hpp>
#include <holdfast/store/tenants.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

int main() {
  const auto directory = std::filesystem::temp_directory_path() / "holdfast_tenants";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directory(directory);
  const auto file = directory / "service.toml";
  setenv("ANSWERS", (directory / "answers.db").c_str(),
         1);  // NOLINT(concurrency-mt-unsafe): before any thread

  // region config
  std::ofstream(file) << R"(
    [failover.store]
    url = "sqlite://${ANSWERS:/var/lib/service/answers.db}"
    create-schema = true

    [failover.store.multitenant]
    enabled = true
    tenants.acme.table-prefix = "ACME_"
    tenants.globex.table-prefix = "GLOBEX_"

    [failover.points.owner-by-id]
    expiry = "3 months"
  )";
  // endregion

  bool up = true;
  // region engine
  auto engine = holdfast::engine::from_config(file.string());
  const auto owner = engine.protect("owner-by-id", [&](int id) -> std::string {
    if (!up) throw std::runtime_error("the upstream is down");
    return *holdfast::current_tenant() + "'s owner " + std::to_string(id);
  });
  // endregion

  const auto ask = [&](const char* tenant) {
    const holdfast::tenant_scope scope(tenant);  // as a request's handler would, from its token
    try {
      const auto answer = owner(42);
      std::cout << tenant << ": " << *answer << (answer.live() ? ", live\n" : ", stale\n");
    } catch (const std::exception& e) {
      std::cout << tenant << ": " << e.what() << '\n';
    }
  };
  ask("acme");
  ask("mallory");  // is not listed: a plain call
  up = false;
  ask("acme");
  ask("globex");   // never asked before, and acme's answer is not theirs
  ask("mallory");  // nothing was stored

  const auto point = engine.points().front();
  std::cout << point.name << " expires after " << point.expiry << "; " << point.numbers.unkeyed
            << " calls were not protected\n";

  try {
    std::ofstream(file) << "[failover.store]\nurl = \"sqlite:answers.db\"\ntable-prefxi = "
                           "\"APP_\"\n[failover.points.owner-by-id]\nexpiry = 3\n";
    (void)holdfast::engine::from_config(file.string());
  } catch (const holdfast::error& refused) {
    std::cout << refused.message() << '\n';
  }
}
