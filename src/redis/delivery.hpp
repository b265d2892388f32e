#pragma once

/// \file
/// What becomes of a pipeline: which commands still have to be sent, where, and when to stop. No input or output: whoever does that
/// tells what happened.

#include <holdfast/redis.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::redis {

/// A command and those that must follow it on its connection: what is sent, redirected and sent again as one.
struct chain {
  std::size_t first = 0;  ///< of its commands
  std::size_t count = 1;
  std::optional<std::uint16_t> slot{};  ///< in a Cluster, when it has keys
  std::size_t tries = 0;                ///< so far
  bool whole = false;                   ///< its script travels with its text
  bool doubtful = false;                ///< it was sent before, and the reply was lost
  bool asking = false;                  ///< to `target` once, after ASKING
  std::string target{};                 ///< a node; empty: wherever its slot is
  std::optional<error> last{};          ///< why it was not answered so far
};

/// How a pipeline is delivered.
struct delivery_rules {
  bool cluster = false;
  std::size_t attempts = 2;                                            ///< of each chain
  std::string fixed_node{};                                            ///< all to this one
  std::function<std::string(const std::string& address)> translate{};  ///< of the address that ASK names, as options::translate
};

/// What delivering met, for the client's numbers.
struct delivery_counts {
  std::uint64_t moved = 0, asked = 0, retried = 0, resent = 0, in_doubt = 0;
};

/// A slot that a node said lives elsewhere.
struct moved_slot {
  std::uint16_t slot = 0;
  std::string address{};
};

/// Thread-safety: none.
class HOLDFAST_API delivery {
 public:
  /// Throws errc::invalid_argument: keys in different slots (named), or a command that has nothing to follow.
  delivery(std::span<const command> commands, delivery_rules rules);

  [[nodiscard]] std::span<const command> commands() const noexcept { return commands_; }
  /// The chains to be sent now, in the order of the commands.
  [[nodiscard]] const std::vector<std::size_t>& waiting() const noexcept { return waiting_; }
  [[nodiscard]] const chain& at(std::size_t index) const noexcept { return chains_[index]; }

  /// Every waiting chain ends in one of these; `asked` is the node it went to.
  void answered(std::size_t index, std::span<reply> replies, std::string_view asked);
  /// Only the first `got.size()` of its replies came. `sent`: the server may have the first of those that did not.
  void interrupted(std::size_t index, std::span<reply> got, bool sent, const error& why, std::string_view asked);

  /// Has one of those that came back to be sent again?
  [[nodiscard]] bool any_again() const noexcept { return !next_.empty(); }
  /// What came back since the last time taught this; those that have to be sent again are the waiting ones from now on. All that were
  /// waiting before must be under way, or have come back.
  struct next_round {
    bool refresh = false;               ///< the slot map is out of date
    std::chrono::microseconds pause{};  ///< before what is waiting is sent; half of it at least, the rest is for jitter
    std::vector<moved_slot> moved{};
  };
  [[nodiscard]] next_round end_round();

  /// No more attempts: everything that waits has failed.
  void give_up(const error& why);

  /// One for each command, when nothing waits any more.
  [[nodiscard]] std::vector<reply> take() { return std::move(replies_); }
  [[nodiscard]] const delivery_counts& counts() const noexcept { return counts_; }

 private:
  [[nodiscard]] bool may_resend(const chain& c) const noexcept;
  void fail(const chain& c, std::size_t from, const error& why, bool in_doubt);
  void again(std::size_t index, const error& why, bool refresh, bool pause);
  void keep(const chain& c, std::span<reply> replies);
  bool follow(std::size_t index, const reply& first, std::string_view asked);

  std::span<const command> commands_;
  delivery_rules rules_;
  std::vector<chain> chains_{};
  std::vector<std::size_t> waiting_{};
  std::vector<std::size_t> next_{};  // waiting after this round
  std::vector<reply> replies_;
  next_round learned_{};
  delivery_counts counts_{};
};

}  // namespace HOLDFAST_NAMESPACE::redis
