// Reads any bytes as the replies of a Redis server, at once and in pieces, and then interprets the
// replies in every way that the client does.

#include <holdfast/redis.hpp>

#include "redis/probe.hpp"
#include "redis/reply_reader.hpp"
#include "redis/server_error.hpp"
#include "redis/slot_map.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::redis;

constexpr std::size_t limit = 1 << 16;

void require(bool condition) {
  if (!condition) std::abort();
}

struct read_result {
  std::vector<reply> replies{};
  std::optional<errc> error_code{};
};

read_result read_replies(std::string_view bytes, std::size_t step) {
  read_result result;
  reply_reader reader(limit);
  try {
    for (std::size_t offset = 0; offset < bytes.size(); offset += step) {
      reader.feed(bytes.substr(offset, step));
      while (auto next = reader.next()) result.replies.push_back(std::move(*next));
    }
  } catch (const error& problem) {
    require(problem.code() == errc::malformed || problem.code() == errc::too_deep ||
            problem.code() == errc::too_large);
    result.error_code = problem.code();
  }
  return result;
}

std::size_t depth_of(const reply& answer) {
  if (!answer.is_list()) return 0;
  std::size_t deepest = 0;
  for (const auto& element : answer.elements()) deepest = std::max(deepest, depth_of(element));
  return deepest + 1;
}

/// Runs a function that may throw holdfast::error, and nothing else.
template <class Function>
void survive(Function interpret) {
  try {
    interpret();
  } catch (const error& refused) {
    require(!refused.message().empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto at_once = read_replies(bytes, size + 1);
  if (size <= 4'096) {
    const auto in_pieces = read_replies(bytes, 3);
    require(in_pieces.replies == at_once.replies);
    require(in_pieces.error_code.has_value() == at_once.error_code.has_value());
  }
  for (const auto& answer : at_once.replies) {
    require(depth_of(answer) <= reply_reader::max_depth);
    const auto next = action_for(answer, "127.0.0.1:6379");
    require(next.slot < 16384);
    require((next.action != reply_action::kind::moved && next.action != reply_action::kind::ask) ||
            !next.address.empty());
    survive([&] { slot_map(answer, "127.0.0.1:6379"); });
    survive([&] { static_cast<void>(read_probe({&answer, 1})); });
  }
  if (at_once.replies.size() >= 3) survive([&] { static_cast<void>(read_probe(at_once.replies)); });
  static_cast<void>(server_error(bytes));
  return 0;
}
