#include "support/postgres_pair.hpp"

#include "support/eventually.hpp"

#include <fstream>
#include <stdexcept>

namespace holdfast::test {

postgres_pair::postgres_pair() {
  first_.emplace();
  second_.emplace(*first_, first_->port());
  (void)first_->run("ALTER SYSTEM SET synchronous_standby_names = '*'");
  (void)first_->run("SELECT pg_reload_conf()");
  const auto is_synchronous = [this] {
    return first_->run("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") ==
           "1\n";
  };
  if (!eventually(is_synchronous)) throw std::runtime_error("the standby did not get synchronous");
}

std::string postgres_pair::url() const {
  const auto port_of = [](const postgres_server& server) {
    return "127.0.0.1:" + std::to_string(server.port());
  };
  return "postgresql://holdfast:secret@" + port_of(*first_) + "," + port_of(*second_) + "/holdfast";
}

void postgres_pair::kill_and_promote() {
  first_->kill9();
  second_->promote();
}

void postgres_pair::hang_and_promote() {
  first_->pause();
  second_->promote();
}

void postgres_pair::switch_over() {
  first_->stop();
  second_->promote();
  std::ofstream(first_->data_directory() / "standby.signal").flush();
  first_->configure("primary_conninfo=host=127.0.0.1 user=postgres password=secret port=" +
                    std::to_string(second_->port()));
  first_->start();
}

}  // namespace holdfast::test
