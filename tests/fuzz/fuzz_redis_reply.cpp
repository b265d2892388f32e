// Any bytes, read as what a Redis server sends: whole, in pieces, and then as everything that a reply may mean.

#include <holdfast/redis.hpp>

#include "redis/probe.hpp"
#include "redis/reply_reader.hpp"
#include "redis/server_error.hpp"
#include "redis/slot_map.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

namespace {

using namespace holdfast;
using redis::reply;

constexpr std::size_t limit = 1 << 16;

void require(bool condition) {
  if (!condition) std::abort();
}

struct outcome {
  std::vector<reply> replies{};
  std::optional<errc> refused{};
};

outcome read(std::string_view bytes, std::size_t step) {
  outcome made;
  redis::reply_reader reader(limit);
  try {
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      reader.feed(bytes.substr(at, step));
      while (auto each = reader.next()) made.replies.push_back(std::move(*each));
    }
  } catch (const error& problem) {
    require(problem.code() == errc::malformed || problem.code() == errc::too_deep || problem.code() == errc::too_large);
    made.refused = problem.code();
  }
  return made;
}

std::size_t depth_of(const reply& what) {
  std::size_t deepest = 0;
  if (what.is_list()) {
    for (const auto& each : what.elements()) deepest = std::max(deepest, depth_of(each));
    return deepest + 1;
  }
  return 0;
}

template <class F>
void survive(F what) {
  try {
    what();
  } catch (const error& refused) {
    require(!refused.message().empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = read(bytes, size + 1);
  if (size <= 4'096) {
    const auto pieces = read(bytes, 3);
    require(pieces.replies == whole.replies);
    require(pieces.refused.has_value() == whole.refused.has_value());
  }
  for (const auto& each : whole.replies) {
    require(depth_of(each) <= 8);
    const auto found = redis::judge(each, "127.0.0.1:6379");
    require(found.slot < 16384);
    require((found.what != redis::verdict::kind::moved && found.what != redis::verdict::kind::ask) || !found.address.empty());
    survive([&] { redis::slot_map(each, "127.0.0.1:6379"); });
    survive([&] { static_cast<void>(redis::read_probe({&each, 1})); });
  }
  if (whole.replies.size() >= 3) survive([&] { static_cast<void>(redis::read_probe(whole.replies)); });
  static_cast<void>(redis::server_error(bytes));
  return 0;
}
