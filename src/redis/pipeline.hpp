#pragma once

/// \file
/// The requests of one call: which of them must be sent, to which node, and when to stop. No input
/// or output: exchanges send the requests and report what happened.
///
/// States of a request:
///
///   waiting    to be sent; `waiting` returns these
///   in flight  part of a batch, until `answered` or `interrupted`
///   to retry   must be sent again; waiting from the next round on
///   settled    its replies, or its errors, are final

#include <holdfast/redis.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::redis {

/// A command, with the commands that must follow it on the same connection (WAIT). They are sent,
/// redirected and sent again together.
struct request {
  std::span<const command> commands{};
  /// Receives a reply for each command.
  std::span<reply> replies{};
  /// Replies that this attempt has received.
  std::size_t received = 0;
  /// In a Cluster, if the command has keys.
  std::optional<std::uint16_t> slot{};
  /// Attempts that failed.
  std::size_t failed_attempts = 0;
  /// The script must be sent with its text.
  bool with_script_text = false;
  /// An earlier attempt was sent, and its reply was lost.
  bool in_doubt = false;
  /// Goes to `node` once, after ASKING.
  bool asking = false;
  /// Node that it must go to. Empty: the master of its slot.
  std::string node{};
  std::optional<error> last_problem{};
};

struct pipeline_rules {
  bool cluster = false;
  /// Attempts for each request.
  std::size_t attempts = 2;
  /// Sends all requests to this node, if not empty.
  std::string node{};
  /// options::translate, for the address in an ASK redirect.
  std::function<std::string(const std::string& address)> translate{};
};

/// Events for the counters of the client.
struct pipeline_counts {
  std::uint64_t moved = 0, asked = 0, retried = 0, resent = 0, in_doubt = 0;
};

/// A slot that has moved to another node, by a MOVED redirect.
struct moved_slot {
  std::uint16_t slot = 0;
  std::string address{};
};

/// Thread-safety: none.
class HOLDFAST_API pipeline {
 public:
  /// Keeps references to the commands. Throws errc::invalid_argument if the keys of a command are
  /// in different slots, or if an after_previous() command has keys or is the first one.
  pipeline(std::span<const command> commands, pipeline_rules rules);
  pipeline(const pipeline&) = delete;
  pipeline& operator=(const pipeline&) = delete;

  [[nodiscard]] request& at(std::size_t index) noexcept { return requests_[index]; }
  /// The requests that must be sent, in the order of the commands.
  [[nodiscard]] const std::vector<request*>& waiting() const noexcept { return waiting_; }
  /// Returns the waiting requests and makes them in flight. Each must end with `answered` or
  /// `interrupted`.
  [[nodiscard]] std::vector<request*> take_waiting() noexcept {
    return std::exchange(waiting_, {});
  }

  /// All replies of a request have arrived from `node`.
  void answered(request& completed, std::string_view node);
  /// Not all replies of a request have arrived. `sent` is true if the server may have received the
  /// first command without a reply.
  void interrupted(request& failed, bool sent, const error& problem, std::string_view node);

  /// Returns true if a request must be sent again.
  [[nodiscard]] bool has_retries() const noexcept { return !retries_.empty(); }
  /// What the requests that ended since the last round have shown.
  struct round {
    /// The slot map is out of date.
    bool refresh = false;
    /// Pause before the waiting requests are sent. The caller may halve it for jitter.
    std::chrono::microseconds pause{};
    std::vector<moved_slot> moved{};
  };
  /// Makes the requests that must be sent again waiting.
  [[nodiscard]] round next_round();

  /// Settles the waiting requests with an error.
  void give_up(const error& problem);

  /// Returns a reply for each command, when all requests are settled.
  [[nodiscard]] std::vector<reply> take_replies() { return std::move(replies_); }
  [[nodiscard]] const pipeline_counts& counts() const noexcept { return counts_; }

 private:
  bool follow_reply(request& completed, std::string_view node);
  void retry(request& failed, const error& problem, bool pause);
  void mark_in_doubt(request& completed);
  void fail(request& failed, std::size_t first, const error& problem, bool in_doubt);

  pipeline_rules rules_;
  std::vector<reply> replies_;
  std::vector<request> requests_{};
  std::vector<request*> waiting_{};
  std::vector<request*> retries_{};
  round round_{};
  pipeline_counts counts_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::redis
