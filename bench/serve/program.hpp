#pragma once

/// \file
/// Programs that a benchmark starts: the servers that are compared, and the client that loads them.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::bench {

/// A directory that is removed in the end.
class private_directory {
 public:
  private_directory();
  private_directory(const private_directory&) = delete;
  private_directory& operator=(const private_directory&) = delete;
  ~private_directory();
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string path() const { return path_.string(); }
  /// Returns the path of the file.
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path path_;
};

/// A running program. It is killed by the destructor, and when the benchmark dies.
class program {
 public:
  /// `processor` is the only one that it may use; -1: any. `log` gets its output; empty: dropped.
  program(const std::vector<std::string>& arguments, int processor, const std::string& log = {});
  program(const program&) = delete;
  program& operator=(const program&) = delete;
  ~program();

  /// Waits until it ends. Returns its exit code, or -1.
  int wait();
  [[nodiscard]] bool is_running();
  /// User and system time of all its threads.
  [[nodiscard]] std::chrono::nanoseconds processor_time() const;
  /// Memory that it has in RAM, without files.
  [[nodiscard]] std::uint64_t resident_bytes() const;

 private:
  pid_t pid_ = -1;
};

/// Runs a program to its end. Returns its output. Throws errc::unavailable if it is missing or
/// fails.
[[nodiscard]] std::string run_program(const std::vector<std::string>& arguments,
                                      int processor = -1);

/// A port of 127.0.0.1 that is free now.
[[nodiscard]] std::uint16_t free_port();

/// A connection to a port of 127.0.0.1.
class client_socket {
 public:
  /// Throws errc::unavailable.
  explicit client_socket(std::uint16_t port);
  client_socket(client_socket&& other) noexcept;
  client_socket& operator=(client_socket&&) = delete;
  ~client_socket();

  void send(const std::string& text) const;
  /// Reads until the header of an answer and `Content-Length` bytes are there. Throws
  /// errc::unavailable if they do not come.
  [[nodiscard]] std::string read_answer() const;
  /// Reads and drops what has come, without waiting. Returns false if the server has closed.
  [[nodiscard]] bool drain() const;

 private:
  int socket_;
};

/// Waits until a program has written a text to its log. Throws as wait_for_port.
void wait_for_text(const std::string& text, program& server, const std::string& log);

/// Waits until a port answers. Throws errc::unavailable if the program ends, or after 30 seconds.
void wait_for_port(std::uint16_t port, program& server, const std::string& log);

}  // namespace holdfast::bench
