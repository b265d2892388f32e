#include "redis/batch.hpp"

#include <algorithm>
#include <optional>

namespace HOLDFAST_NAMESPACE::detail::redis {

void batch::encode(known_scripts& scripts) {
  scripts_ = &scripts;
  bytes_.clear();  // an earlier connection was refused before anything was sent
  ends_.clear();
  script_texts_ = 0;
  ends_.reserve(requests_.size());
  for (const request* encoded : requests_) {
    if (encoded->asking) {
      bytes_ += "*1\r\n$6\r\nASKING\r\n";
      ends_.push_back(bytes_.size());
    }
    for (const command& written : encoded->commands) {
      // A script goes with its text the first time it is sent over a connection. Trying EVALSHA
      // first could cost a second round trip.
      const bool with_text =
          written.is_script() && (scripts.add(written.script_sha1()) || encoded->with_script_text);
      if (with_text) ++script_texts_;
      written.write(bytes_, with_text);
      ends_.push_back(bytes_.size());
    }
  }
}

bool batch::add_reply(reply answer) {
  if (complete()) return false;
  request& current = *requests_[answered_];
  if (current.asking && !asking_answered_) {
    asking_answered_ = true;
    return true;
  }
  current.replies[current.received++] = std::move(answer);
  if (current.received == current.commands.size()) {
    ++answered_;
    asking_answered_ = false;
  }
  return true;
}

bool batch::met_replica() const noexcept {
  const auto from_replica = [](const reply& answer) {
    if (!answer.is_error()) return false;
    const auto& code = answer.problem().backend_code();
    return code == "READONLY" || code == "UNBLOCKED" || code == "MASTERDOWN";
  };
  return std::ranges::any_of(requests_, [&](const request* each) {
    return std::ranges::any_of(each->replies.first(each->received), from_replica);
  });
}

void batch::forget_unknown_script(const request& completed) {
  const command& first = completed.commands.front();
  if (!first.is_script() || completed.received == 0) return;
  const reply& answer = completed.replies.front();
  if (answer.is_error() && answer.problem().backend_code() == "NOSCRIPT")
    scripts_->remove(first.script_sha1());
}

void batch::settle(const error* problem) {
  // A reply that cannot be read (too large, too deep) is the failure of its own request. The
  // requests after it only lost their connection.
  std::optional<error> lost_connection;
  std::size_t position = 0;  // of a command in ends_
  for (request* settled : requests_) {
    if (settled->asking) ++position;
    const std::size_t unanswered = position + settled->received;
    position += settled->commands.size();
    forget_unknown_script(*settled);
    if (settled->received == settled->commands.size()) {
      owner_->answered(*settled, node());
      continue;
    }
    const bool sent = sent_ > 0 && sent_ >= ends_[unanswered];
    owner_->interrupted(*settled, sent, lost_connection ? *lost_connection : *problem, node());
    if (!lost_connection && !problem->transient() && sent_ > 0)
      lost_connection.emplace(errc::unavailable,
                              "the connection to Redis at " + node() +
                                  " was closed because an earlier reply could not be read",
                              error::details{.transient = true});
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
