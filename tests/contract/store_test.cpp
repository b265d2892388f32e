#include <holdfast/database.hpp>
#include <holdfast/store/memory.hpp>
#include <holdfast/store/tiered.hpp>
#include <holdfast/store/write_behind.hpp>

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

struct as_the_model {
  static std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) {
    return std::make_shared<model_store>(model_store_options{.clock = std::move(time_source)});
  }
};

struct in_memory {
  static std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) {
    return make_memory_store({.clock = std::move(time_source)});
  }
};

struct on_sqlite {
  [[nodiscard]] std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) const {
    return open("sqlite://" + (directory.path() / "store.db").string(),
                {.clock = std::move(time_source)})
        .store({.prefix = "T_", .create_schema = true});
  }
  temporary_directory directory;
};

/// One database for each test program, one table for each test.
template <class Server>
struct on_server {
  static std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) {
    static const auto& server = shared_server<Server>();
    static const std::string url = server.url(server.create_database("contract"));
    static std::atomic<int> tables{0};
    return open(url, {.clock = std::move(time_source)})
        .store({.prefix = "T" + std::to_string(++tables) + "_", .create_schema = true});
  }
};

/// Memory in front of another; reads with a deadline, on threads of their own.
template <class Below>
struct tiered_over {
  std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) {
    return make_tiered_store(below.make(time_source), {.read_deadline = std::chrono::minutes(1),
                                                       .executor = make_thread_pool(),
                                                       .clock = time_source});
  }
  Below below;
};

/// The wall of a clock that a test holds still; deadlines and pauses are the machine's, as those of
/// the thread pool.
class wall_of final : public clock {
 public:
  explicit wall_of(std::shared_ptr<const clock> wall) : wall_(std::move(wall)) {}
  [[nodiscard]] timestamp now() const noexcept override { return wall_->now(); }
  [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override {
    return std::chrono::steady_clock::now();
  }

 private:
  std::shared_ptr<const clock> wall_;
};

template <class Below>
struct behind_over {
  std::shared_ptr<store> make(std::shared_ptr<const clock> time_source) {
    return make_write_behind(
        below.make(time_source),
        {.scan_flush = std::chrono::minutes(1), .clock = std::make_shared<wall_of>(time_source)});
  }
  Below below;
};

INSTANTIATE_TYPED_TEST_SUITE_P(model, StoreContract, as_the_model);
INSTANTIATE_TYPED_TEST_SUITE_P(memory, StoreContract, in_memory);
INSTANTIATE_TYPED_TEST_SUITE_P(tiered_memory, StoreContract, tiered_over<in_memory>);
INSTANTIATE_TYPED_TEST_SUITE_P(tiered_sqlite, StoreContract, tiered_over<on_sqlite>);
INSTANTIATE_TYPED_TEST_SUITE_P(behind_memory, StoreContract, behind_over<in_memory>);
INSTANTIATE_TYPED_TEST_SUITE_P(behind_sqlite, StoreContract, behind_over<on_sqlite>);
INSTANTIATE_TYPED_TEST_SUITE_P(sqlite, StoreContract, on_sqlite);
INSTANTIATE_TYPED_TEST_SUITE_P(postgresql, StoreContract, on_server<postgres_server>);
INSTANTIATE_TYPED_TEST_SUITE_P(mariadb, StoreContract, on_server<mariadb_server>);

}  // namespace
}  // namespace holdfast::test
