// Records on standard error, in syslog and in the journal, as another process reads them.

#include <holdfast/log_output.hpp>

#include "support/failure_of.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <regex>
#include <string>

namespace holdfast::test {
namespace {

void write_to(const log_sink& sink, log_level level, std::string_view message,
              std::initializer_list<log_field> fields = {}) {
  sink({.level = level, .message = message, .fields = {fields.begin(), fields.size()}});
}

std::string written_to_stderr(const log_sink& sink) {
  testing::internal::CaptureStderr();
  write_to(sink, log_level::debug, "dropped");
  write_to(sink, log_level::warning, "line\nbreak", {{"point", "p\"1"}, {"problem", "no disk"}});
  return testing::internal::GetCapturedStderr();
}

/// A socket that receives what is sent to a log service.
class receiver {
 public:
  receiver() : descriptor_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  receiver(const receiver&) = delete;
  receiver& operator=(const receiver&) = delete;
  ~receiver() {
    ::close(descriptor_);
    std::filesystem::remove(path);
  }
  [[nodiscard]] std::string next() const {
    std::array<char, 4096> buffer{};
    const auto size = ::recv(descriptor_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    return size > 0 ? std::string(buffer.data(), static_cast<std::size_t>(size)) : std::string();
  }

  const std::string path =
      (std::filesystem::temp_directory_path() / ("hf-log-" + std::to_string(::getpid()))).string();

 private:
  int descriptor_;
};

TEST(LogOutput, StandardErrorGetsOneLine) {
  const std::regex expected(
      R"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{6}Z warning: line\\x0abreak: no disk \(point p"1\))"
      "\n");
  const std::string line = written_to_stderr(log_to_stderr());
  EXPECT_TRUE(std::regex_match(line, expected)) << line;
}

TEST(LogOutput, StandardErrorGetsLinesOfJson) {
  const std::string line = written_to_stderr(log_to_stderr({.format = log_format::json}));
  const auto message = line.find(R"(","level":"warning")");
  ASSERT_NE(message, std::string::npos) << line;
  EXPECT_TRUE(line.starts_with(R"({"time":")")) << line;
  EXPECT_EQ(
      line.substr(message),
      R"(","level":"warning","message":"line\u000abreak","fields":{"point":"p\"1","problem":"no disk"}})"
      "\n");
}

TEST(LogOutput, LevelsBelowTheLeastAreDropped) {
  const auto sink = log_to_stderr({.least = log_level::error});
  EXPECT_EQ(written_to_stderr(sink), "");
}

TEST(LogOutput, SyslogGetsPriorityAndName) {
  const receiver syslog;
  const auto sink = log_to_syslog({.identifier = "shop", .socket = syslog.path});
  write_to(sink, log_level::debug, "dropped");
  write_to(sink, log_level::error, "lost", {{"point", "prices"}});
  const std::string datagram = syslog.next();
  const std::regex expected(
      R"(<11>[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} shop\[[0-9]+\]: lost \(point prices\))");
  EXPECT_TRUE(std::regex_match(datagram, expected)) << datagram;
  EXPECT_EQ(syslog.next(), "");
}

TEST(LogOutput, TheJournalGetsFields) {
  const receiver journal;
  const auto sink = log_to_journal({.identifier = "shop", .socket = journal.path});
  write_to(sink, log_level::warning, "two\nlines", {{"store-name", "a\nB=c"}});
  EXPECT_EQ(journal.next(),
            "PRIORITY=4\nSYSLOG_IDENTIFIER=shop\nMESSAGE=two\\x0alines (store-name a\\x0aB=c)\n"
            "HOLDFAST_STORE_NAME=a\\x0aB=c\n");
}

TEST(LogOutput, WithoutAServiceItSaysWhatToUse) {
  const auto failure = failure_of([] { (void)log_to_syslog({.socket = "/nonexistent/log"}); });
  EXPECT_EQ(failure.code(), errc::unavailable);
  EXPECT_NE(failure.message().find("use log_to_stderr"), std::string::npos) << failure.what();
}

}  // namespace
}  // namespace holdfast::test
