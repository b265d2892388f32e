// Tenants: each has a table, all share one pool and one writer, and unknown tenants are refused.

#include <holdfast/holdfast.hpp>
#include <holdfast/store/compose.hpp>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <thread>

int main() {
  using namespace std::chrono_literals;
  const auto file = std::filesystem::temp_directory_path() / "holdfast_store_tenants.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);
  auto db = holdfast::open("sqlite://" + file.string());
  const auto now = holdfast::system_clock()->now();
  const auto answer = [&](const std::string& name) {
    return holdfast::entry{.name = "owner",
                           .key = "42",
                           .as_of = now,
                           .expire_on = now + 24h,
                           .payload = name,
                           .payload_class = "app.owner"};
  };

  // region tenants
  const std::vector<holdfast::tenant> tenants{{.id = "acme"},
                                              {.id = "globex.com", .place = "GLOBEX"}};
  auto base = db.store(
      {.create_schema = true,  // acme_FAILOVER_STORE, GLOBEX_FAILOVER_STORE
       .realms = holdfast::tenant_realms(tenants, holdfast::tenant_strategy::table_prefix)});
  auto store = holdfast::make_tenant_store(base, {.tenants = {"acme", "globex.com"}});

  {
    const holdfast::tenant_scope scope("acme");
    store->put(answer("Wile E."));
  }
  {
    const holdfast::tenant_scope scope("globex.com");
    std::cout << "globex.com has " << store->count("owner") << '\n';
  }
  try {
    const holdfast::tenant_scope scope("mallory");
    (void)store->find("owner", "42");
  } catch (const holdfast::error& refused) {
    std::cout << "mallory: " << refused.message() << '\n';
  }
  // endregion

  // region threads
  const holdfast::tenant_scope scope("acme");
  std::thread worker([&, captured = holdfast::current_tenant()] {
    const holdfast::tenant_scope restored(captured);
    std::cout << "the worker finds " << *store->find("owner", "42")->payload << '\n';
  });
  worker.join();
  // endregion

  // region compose
  auto keys = holdfast::sealing_ring::from_text("may:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
  auto all = holdfast::compose(
      base, {.tenants = holdfast::tenant_options{.tenants = {"acme", "globex.com"}},
             .tiered = holdfast::tiered_options{},
             .write_behind = holdfast::write_behind_options{},
             .sealed = holdfast::sealed_options{.keys = std::move(keys), .read_plaintext = true}});
  all->put(answer("Road Runner"));
  std::cout << std::boolalpha
            << "all is written: " << all->close(std::chrono::steady_clock::now() + 10s).complete()
            << '\n';
  std::cout << "sealed: " << all->parts().sealed->numbers().sealed << '\n';
  // endregion
}
