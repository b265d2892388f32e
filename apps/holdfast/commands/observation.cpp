#include "commands/observation.hpp"

#include <holdfast/error.hpp>

#include "terminal/text.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::cli {

namespace {

bool is_about_instance(const log_record& record) {
  return record.level == log_level::info &&
         std::ranges::any_of(record.fields,
                             [](const log_field& field) { return field.name == "instance"; });
}

}  // namespace

observation_address::observation_address(command& cmd)
    : listen(cmd.value("--listen", "ADDRESS",
                       "Serve /healthz, /readyz and /metrics there: 127.0.0.1:9100, unix:/path; "
                       "port 0: any free one")),
      allow_plain(cmd.flag("--allow-plain",
                           "With --listen: an address that other machines can reach; there is no "
                           "encryption, and no token")) {}

std::shared_ptr<prometheus_registry> observation_address::metrics() const {
  if (!listen.is_set()) {
    if (allow_plain.is_set())
      throw error(errc::invalid_argument, "--allow-plain is only for --listen; remove it");
    return nullptr;
  }
  detail::serve::check_observation_address(listen.text(), allow_plain.is_set());
  return make_prometheus_registry();
}

std::unique_ptr<detail::serve::observation_server> observation_address::start(
    console& io, std::shared_ptr<prometheus_registry> metrics,
    detail::serve::readiness_check check) const {
  if (!listen.is_set()) return nullptr;
  detail::serve::observation_options options{
      .listen = listen.text(), .allow_plain = allow_plain.is_set(), .metrics = std::move(metrics)};
  options.checks.push_back(std::move(check));
  auto server = std::make_unique<detail::serve::observation_server>(std::move(options));
  io.note("listening on " + server->address());
  return server;
}

log_sink queue_notices(std::shared_ptr<message_queue<std::string>> notices, log_sink next) {
  return [queue = std::move(notices), next = std::move(next)](const log_record& record) {
    if (is_about_instance(record)) queue->push(std::string(record.message));
    else next(record);
  };
}

}  // namespace holdfast::cli
