#pragma once

/// \file
/// The requests that go to one node over one connection, in order: their bytes, and which reply
/// belongs to which request. No input or output.

#include <holdfast/redis.hpp>

#include "redis/pipeline.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::redis {

/// The scripts that were sent over a connection, which its server therefore knows. When there are
/// too many, the set is cleared, and scripts are sent with their text again.
/// Thread-safety: none.
class known_scripts {
 public:
  /// Returns true if the script was not in the set.
  bool add(const std::string& sha1) {
    if (scripts_.contains(sha1)) return false;
    if (scripts_.size() >= max_scripts) scripts_.clear();
    scripts_.insert(sha1);
    return true;
  }
  void remove(const std::string& sha1) { scripts_.erase(sha1); }

 private:
  static constexpr std::size_t max_scripts = 1'000;
  std::unordered_set<std::string> scripts_{};
};

/// Use: `add` requests, `encode`, send the bytes, `add_reply` for each reply, `settle`.
/// Thread-safety: none.
class HOLDFAST_API batch {
 public:
  /// Keeps references to the owner of the requests and to the address of the node.
  batch(pipeline& owner, const std::string& node) : owner_(&owner), node_(&node) {}

  void reserve(std::size_t requests) { requests_.reserve(requests); }
  void add(request& added) { requests_.push_back(&added); }
  [[nodiscard]] const request& front() const noexcept { return *requests_.front(); }
  [[nodiscard]] const std::string& node() const noexcept { return *node_; }

  /// Writes the commands for a connection, whose scripts it keeps a reference to.
  void encode(known_scripts& scripts);
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string_view unsent() const noexcept {
    return std::string_view(bytes_).substr(sent_);
  }
  void mark_sent(std::size_t bytes) noexcept { sent_ += bytes; }

  /// Stores the next reply in its request. Returns false if there are more replies than commands.
  [[nodiscard]] bool add_reply(reply answer);
  /// Returns true when all replies have arrived.
  [[nodiscard]] bool complete() const noexcept { return answered_ == requests_.size(); }

  /// Returns the number of scripts that were written with their text.
  [[nodiscard]] std::size_t script_texts() const noexcept { return script_texts_; }
  /// Returns true if a reply shows that the server is a replica. Valid until `settle`.
  [[nodiscard]] bool met_replica() const noexcept;

  /// Reports the outcome of every request to the owner. `problem` says why replies are missing;
  /// null if the batch is complete.
  void settle(const error* problem);

 private:
  void forget_unknown_script(const request& completed);

  pipeline* owner_;
  const std::string* node_;
  std::vector<request*> requests_{};
  known_scripts* scripts_ = nullptr;
  std::string bytes_{};
  std::vector<std::size_t> ends_{};  // where each command ends in bytes_, ASKING included
  std::size_t sent_ = 0;             // bytes
  std::size_t answered_ = 0;         // requests that have all their replies
  bool asking_answered_ = false;     // the current request has its reply to ASKING
  std::size_t script_texts_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail::redis
