#include "java/java_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace holdfast::test {

namespace {

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

std::string whole(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

java_process::java_process(std::uint16_t port, const std::string& database,
                           const std::string& zone) {
  const auto pipe_name = directory_.path() / "questions";
  checked(mkfifo(pipe_name.c_str(), 0600), "mkfifo");
  // For reading too, or opening it would wait for Java.
  questions_ = checked(::open(pipe_name.c_str(), O_RDWR | O_CLOEXEC), "open");
  std::array<int, 2> ends{};
  checked(pipe2(ends.data(), O_CLOEXEC), "pipe2");
  answers_ = ends[0];
  // Quick to start rather than quick to run.
  child_options options{
      .argv = {HOLDFAST_TEST_JAVA, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx96m",
               "-Duser.timezone=" + zone, "-cp", HOLDFAST_TEST_CLASSPATH, "peer.Main",
               "jdbc:postgresql://127.0.0.1:" + std::to_string(port) + "/" + database}};
  options.input = pipe_name;
  options.log = directory_.path() / "log";
  options.output = ends[1];
  java_.emplace(std::move(options));
  ::close(ends[1]);
}

java_process::~java_process() {
  java_.reset();
  ::close(questions_);
  ::close(answers_);
}

nlohmann::json java_process::ask(const nlohmann::json& question) {
  const std::string line = question.dump() + "\n";
  if (write(questions_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw std::runtime_error("the question is too long");
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (;;) {
    if (const auto end = received_.find('\n'); end != std::string::npos) {
      auto answer = nlohmann::json::parse(received_.substr(0, end));
      received_.erase(0, end + 1);
      if (answer.contains("error")) throw std::runtime_error(answer["error"].get<std::string>());
      return answer;
    }
    pollfd ready{answers_, POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          until - std::chrono::steady_clock::now())
                          .count();
    if (left <= 0)
      throw std::runtime_error("Java does not answer: " + whole(directory_.path() / "log"));
    if (poll(&ready, 1, static_cast<int>(left)) <= 0) continue;
    std::array<char, 4096> buffer{};
    const auto count = read(answers_, buffer.data(), buffer.size());
    if (count <= 0) throw std::runtime_error("Java has ended: " + whole(directory_.path() / "log"));
    received_.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace holdfast::test
