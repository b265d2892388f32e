// kafka_mock BROKERS: brokers of Kafka for other processes, the mock cluster of librdkafka. Prints
// the addresses of the brokers, and runs until it is killed. SIGUSR1 takes all brokers down,
// SIGUSR2 brings them back. It keeps messages in memory.

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace {

void ignore_log(const rd_kafka_t* /*owner*/, int /*level*/, const char* /*facility*/,
                const char* /*text*/) {}

}  // namespace

int main(int argc, char** argv) {
  const int brokers = argc == 2 ? std::atoi(argv[1]) : 0;
  if (brokers <= 0) {
    (void)std::fputs("kafka_mock BROKERS\n", stderr);
    return 2;
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGUSR2);
  sigprocmask(SIG_BLOCK, &signals, nullptr);  // also for the threads of librdkafka

  std::array<char, 256> problem{};
  rd_kafka_conf_t* settings = rd_kafka_conf_new();
  rd_kafka_conf_set_log_cb(settings, ignore_log);
  rd_kafka_t* owner = rd_kafka_new(RD_KAFKA_PRODUCER, settings, problem.data(), problem.size());
  rd_kafka_mock_cluster_t* cluster =
      owner != nullptr ? rd_kafka_mock_cluster_new(owner, brokers) : nullptr;
  if (cluster == nullptr) {
    (void)std::fprintf(stderr, "kafka_mock: %s\n", problem.data());
    return 1;
  }
  (void)std::printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
  (void)std::fflush(stdout);
  for (;;) {
    int number = 0;
    if (sigwait(&signals, &number) != 0) return 1;
    for (int id = 1; id <= brokers; ++id) {
      if (number == SIGUSR1) (void)rd_kafka_mock_broker_set_down(cluster, id);
      else (void)rd_kafka_mock_broker_set_up(cluster, id);
    }
  }
}
