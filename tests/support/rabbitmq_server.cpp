#include "support/rabbitmq_server.hpp"

#include "support/eventually.hpp"
#include "support/free_port.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace holdfast::test {
namespace {

/// RabbitMQ does not run as root in every installation.
constexpr auto rabbitmq_user = "rabbitmq";
constexpr auto server_script = "/usr/lib/rabbitmq/bin/rabbitmq-server";

void write_file(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

}  // namespace

rabbitmq_server::rabbitmq_server(std::vector<std::string> settings)
    : settings_(std::move(settings)), place_("rabbitmq", rabbitmq_user, medium::memory) {
  start_epmd();
  const auto place = place_.path();
  prepare({.name = "RabbitMQ",
           .user = rabbitmq_user,
           .data = place,
           .log = place / "server.log",
           .command = [this](std::uint16_t port) { return command(port); },
           .ready =
               [](pid_t, const std::string& log) {
                 return log.find("Server startup complete") != std::string::npos;
               },
           .port_taken =
               [](const std::string& log) { return log.find("eaddrinuse") != std::string::npos; },
           .before_start =
               [this] {
                 if (!epmd_->running()) start_epmd();
               },
           .stop_signal = SIGTERM,
           .start_timeout = std::chrono::seconds(120)},
          [this](std::uint16_t port) { port_ = port; });
  start();
}

rabbitmq_server::~rabbitmq_server() { kill9(); }  // before the directory goes

void rabbitmq_server::start_epmd() {
  for (int attempt = 0; attempt < 20; ++attempt) {
    epmd_port_ = free_port();
    epmd_.emplace(child_options{
        .argv = {"epmd", "-address", "127.0.0.1", "-port", std::to_string(epmd_port_)},
        .user = rabbitmq_user});
    const auto answers = [&] {
      return run_program({.argv = {"epmd", "-names"},
                          .environment = {"ERL_EPMD_PORT=" + std::to_string(epmd_port_)}})
          .status.success();
    };
    // It ends if another program has taken the port.
    if (eventually([&] { return !epmd_->running() || answers(); }) && epmd_->running()) return;
  }
  throw std::runtime_error("epmd, the name server of Erlang, does not start");
}

std::vector<std::string> rabbitmq_server::command(std::uint16_t port) const {
  const auto place = place_.path().string();
  std::string conf = "listeners.tcp.1 = 127.0.0.1:" + std::to_string(port) +
                     "\nloopback_users = none\nlog.console = true\nlog.file = false\n"
                     "disk_free_limit.absolute = 1MB\n";
  for (const auto& line : settings_) conf.append(line).append("\n");
  write_file(place_.path() / "rabbitmq.conf", conf);
  write_file(place_.path() / "plugins", "[].\n");
  return {"env", "HOME=" + place, "RABBITMQ_NODENAME=hf" + std::to_string(port) + "@localhost",
          "RABBITMQ_DIST_PORT=" + std::to_string(free_port()),
          "ERL_EPMD_PORT=" + std::to_string(epmd_port_), "ERL_EPMD_ADDRESS=127.0.0.1",
          "RABBITMQ_MNESIA_BASE=" + place + "/mnesia", "RABBITMQ_LOG_BASE=" + place + "/log",
          "RABBITMQ_CONFIG_FILE=" + place + "/rabbitmq.conf",
          "RABBITMQ_ENABLED_PLUGINS_FILE=" + place + "/plugins", "RABBITMQ_CONF_ENV_FILE=/dev/null",
          "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-start_epmd false -kernel inet_dist_use_interface "
          "{127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none",
          // The script then becomes the server, instead of a parent that outlives a killed test.
          "RUNNING_UNDER_SYSTEMD=1", server_script};
}

}  // namespace holdfast::test
