#include <holdfast/database.hpp>
#include <holdfast/store/compose.hpp>

#include "contract/realm_contract.hpp"
#include "contract/store_contract.hpp"
#include "support/mariadb_server.hpp"
#include "support/model_store.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <atomic>
#include <string>
#include <utility>

namespace holdfast::test {
namespace {

sealed_options keys() {
  return {.keys = sealing_ring::from_text("k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")};
}

std::shared_ptr<store> model(std::shared_ptr<const clock> time_source) {
  return std::make_shared<model_store>(model_store_options{.clock = std::move(time_source)});
}

// ---- each decorator is a store

struct sealed {
  static std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) {
    return make_sealed(model(std::move(time_source)), keys());
  }
};

struct for_tenants {
  static std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) {
    return make_tenant_store(model(std::move(time_source)),
                             {.tenants = {"acme", "globex"}, .default_tenant = "acme"});
  }
};

/// All of them, on a file. The tenant is the same for every thread of a test.
struct full_stack {
  [[nodiscard]] std::shared_ptr<store> make(const std::shared_ptr<const clock>& time_source) const {
    const auto base =
        open("sqlite://" + (directory.path() / "store.db").string(), {.clock = time_source})
            .store({.prefix = "T_",
                    .create_schema = true,
                    .realms = tenant_realms({{.id = "acme"}}, tenant_strategy::table_prefix)});
    return compose(base, {.tenants = tenant_options{.tenants = {"acme"}, .default_tenant = "acme"},
                          .tiered = tiered_options{.clock = time_source},
                          .write_behind = write_behind_options{.clock = time_source},
                          .sealed = keys()});
  }
  temporary_directory directory;
};

INSTANTIATE_TYPED_TEST_SUITE_P(sealed, StoreContract, sealed);
INSTANTIATE_TYPED_TEST_SUITE_P(tenants, StoreContract, for_tenants);
INSTANTIATE_TYPED_TEST_SUITE_P(full_stack, StoreContract, full_stack);

// ---- realms

const std::vector<tenant> both{{.id = "acme"}, {.id = "globex"}};

struct realms_in_memory {
  static constexpr bool refuses_others = false;
  static std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) {
    return make_memory_store({.clock = std::move(time_source)});
  }
};

struct realms_sealed {
  static constexpr bool refuses_others = false;
  static std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) {
    return make_sealed(model(std::move(time_source)), keys());
  }
};

struct realms_on_sqlite {
  static constexpr bool refuses_others = true;
  [[nodiscard]] std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) const {
    return open("sqlite://" + (directory.path() / "store.db").string(),
                {.clock = std::move(time_source)})
        .store({.prefix = "T_",
                .create_schema = true,
                .realms = tenant_realms(both, tenant_strategy::table_prefix)});
  }
  temporary_directory directory;
};

/// One database for each test program, one prefix for each test.
template <class Server, tenant_strategy Strategy>
struct realms_on_server {
  static constexpr bool refuses_others = true;
  static std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) {
    static const auto& server = shared_server<Server>();
    static const std::string name = server.create_database("realms");
    static std::atomic<int> tables{0};
    const auto number = std::to_string(++tables);
    std::vector<tenant> tenants = both;
    if (Strategy == tenant_strategy::schema) {
      // A schema of MySQL is a database of the server: it must have a name of its own.
      for (auto& each : tenants) {
        each.place = name + "_" + each.id;
        server.run("CREATE SCHEMA IF NOT EXISTS " + each.place +
                       (Server::kind == "postgresql" ? " AUTHORIZATION holdfast" : ""),
                   name);
      }
    }
    return open(server.url(name), {.clock = std::move(time_source)})
        .store({.prefix = "T" + number + "_",
                .create_schema = true,
                .realms = tenant_realms(tenants, Strategy)});
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(memory, RealmContract, realms_in_memory);
INSTANTIATE_TYPED_TEST_SUITE_P(sealed, RealmContract, realms_sealed);
INSTANTIATE_TYPED_TEST_SUITE_P(sqlite, RealmContract, realms_on_sqlite);
using on_postgresql_by_prefix = realms_on_server<postgres_server, tenant_strategy::table_prefix>;
using on_postgresql_by_schema = realms_on_server<postgres_server, tenant_strategy::schema>;
using on_mariadb_by_prefix = realms_on_server<mariadb_server, tenant_strategy::table_prefix>;
using on_mariadb_by_schema = realms_on_server<mariadb_server, tenant_strategy::schema>;
INSTANTIATE_TYPED_TEST_SUITE_P(postgresql_prefix, RealmContract, on_postgresql_by_prefix);
INSTANTIATE_TYPED_TEST_SUITE_P(postgresql_schema, RealmContract, on_postgresql_by_schema);
INSTANTIATE_TYPED_TEST_SUITE_P(mariadb_prefix, RealmContract, on_mariadb_by_prefix);
INSTANTIATE_TYPED_TEST_SUITE_P(mariadb_schema, RealmContract, on_mariadb_by_schema);

}  // namespace
}  // namespace holdfast::test
