#pragma once

/// \file
/// What goes over one connection in one round: bytes out, replies in, and whose they are. No input or output.

#include <holdfast/redis.hpp>

#include "redis/delivery.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace HOLDFAST_NAMESPACE::redis {

/// The scripts that the server at the other end of a connection knows. Bounded: beyond, it forgets all and learns again.
/// Thread-safety: none.
class known_scripts {
 public:
  /// Is it new here? From now on it is not.
  bool learn(const std::string& sha1) {
    if (held_.contains(sha1)) return false;
    if (held_.size() >= most) held_.clear();
    held_.insert(sha1);
    return true;
  }
  void forget(const std::string& sha1) { held_.erase(sha1); }

 private:
  static constexpr std::size_t most = 1'000;
  std::unordered_set<std::string> held_{};
};

/// Thread-safety: none.
class HOLDFAST_API flight {
 public:
  flight(delivery& of, std::string node, known_scripts& scripts) : of_(&of), node_(std::move(node)), scripts_(&scripts) {}

  /// Puts a waiting chain on board.
  void add(std::size_t index);

  [[nodiscard]] const std::string& node() const noexcept { return node_; }
  /// All that is to be sent, and how much of it is.
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t sent() const noexcept { return sent_; }
  void advance(std::size_t bytes) noexcept { sent_ += bytes; }

  /// The next reply. More than were asked for is a broken connection: false.
  [[nodiscard]] bool take(reply what);
  [[nodiscard]] bool complete() const noexcept { return replies_.size() == ends_.size(); }
  [[nodiscard]] std::size_t whole_scripts() const noexcept { return whole_scripts_; }

  /// Did one of the replies say that it came from a replica? Before it lands.
  [[nodiscard]] bool met_replica() const noexcept;

  /// Tells the delivery what came of each chain. `why` when the connection broke before all was there.
  void land(const error* why);

 private:
  struct passenger {
    std::size_t chain = 0;
    std::size_t first = 0;  ///< its first reply, ASKING's left out
  };

  delivery* of_;
  std::string node_;
  known_scripts* scripts_;
  std::string bytes_{};
  std::size_t sent_ = 0;
  std::vector<std::size_t> ends_{};  // of each command's bytes
  std::vector<passenger> passengers_{};
  std::vector<reply> replies_{};
  std::size_t whole_scripts_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::redis
