#include "support/server_control.hpp"

#include "support/free_port.hpp"
#include "support/process_state.hpp"

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

namespace holdfast::test {
namespace {

constexpr auto poll_interval = std::chrono::milliseconds(5);

std::string read_from(const std::filesystem::path& file, std::uintmax_t offset) {
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  return {std::istreambuf_iterator<char>(in), {}};
}

std::uintmax_t size_of(const std::filesystem::path& file) {
  std::error_code missing;
  const auto size = std::filesystem::file_size(file, missing);
  return missing ? 0 : size;
}

std::string tail(const std::string& text) {
  constexpr std::size_t most = 2'000;
  return text.size() <= most ? text : "..." + text.substr(text.size() - most);
}

// Freezes the parent first, so that it can have no further children while we look.
std::vector<pid_t> freeze(pid_t parent) {
  ::kill(parent, SIGSTOP);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (process_state(parent).value_or('T') != 'T' && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(poll_interval);
  return children_of(parent);
}

}  // namespace

server_control::~server_control() { kill_all(); }

void server_control::prepare(server_recipe recipe, std::function<void(std::uint16_t)> on_port) {
  recipe_ = std::move(recipe);
  on_port_ = std::move(on_port);
}

bool server_control::start_once(std::uint16_t port) {
  if (recipe_.before_start) recipe_.before_start();
  const auto offset = size_of(recipe_.log);
  process_.emplace(child_options{.argv = recipe_.command(port),
                                 .directory = recipe_.data,
                                 .user = recipe_.user,
                                 .log = recipe_.log});
  const auto deadline = std::chrono::steady_clock::now() + recipe_.start_timeout;
  for (;;) {
    const auto said = read_from(recipe_.log, offset);
    if (const auto ended = process_->wait(poll_interval)) {
      const auto last_words = read_from(recipe_.log, offset);
      process_.reset();
      if (recipe_.port_taken(last_words)) return false;
      throw std::runtime_error(recipe_.name + " ended while it started, " + ended->describe() +
                               ":\n" + tail(last_words));
    }
    if (recipe_.ready(process_->pid(), said)) return true;
    if (std::chrono::steady_clock::now() > deadline) {
      kill_all();
      throw std::runtime_error(recipe_.name + " did not get ready in time:\n" + tail(said));
    }
  }
}

void server_control::start() {
  if (running()) return;
  process_.reset();
  // A new server tries another port each time. One that had a port keeps it, for its clients know
  // it, and waits for it a while.
  const bool fixed = port_ != 0;
  for (int attempt = 0; attempt < (fixed ? 600 : 20); ++attempt) {
    const auto port = fixed ? port_ : free_port();
    if (start_once(port)) {
      port_ = port;
      on_port_(port);
      return;
    }
    if (fixed) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  throw std::runtime_error(recipe_.name + " found no port to listen on:\n" + tail(log()));
}

void server_control::stop() {
  if (!running()) return;
  resume();
  process_->signal(recipe_.stop_signal);
  if (!process_->wait(std::chrono::seconds(60))) {
    kill_all();
    throw std::runtime_error(recipe_.name + " did not stop in time:\n" + tail(log()));
  }
  process_.reset();
}

void server_control::kill9() { kill_all(); }

void server_control::kill_all() {
  if (!running()) return;
  std::vector<process_identity> children;
  for (const auto child : freeze(process_->pid())) {
    if (const auto identity = identify(child)) children.push_back(*identity);
  }
  process_->kill();
  for (const auto& child : children) {
    if (process_alive(child)) ::kill(child.pid, SIGKILL);
  }
  // A child that is still there holds the shared memory, and the next start would refuse.
  for (const auto& child : children) {
    while (process_alive(child)) std::this_thread::sleep_for(poll_interval);
  }
  process_.reset();
}

void server_control::restart() {
  stop();
  start();
}

void server_control::pause() {
  if (!running()) return;
  for (const auto child : freeze(process_->pid())) ::kill(child, SIGSTOP);
}

void server_control::resume() {
  if (!running()) return;
  for (const auto child : children_of(process_->pid())) ::kill(child, SIGCONT);
  process_->signal(SIGCONT);
}

bool server_control::running() { return process_ && process_->running(); }

pid_t server_control::pid() const {
  if (!process_) throw std::logic_error(recipe_.name + " does not run");
  return process_->pid();
}

std::string server_control::log() const { return read_from(recipe_.log, 0); }

}  // namespace holdfast::test
