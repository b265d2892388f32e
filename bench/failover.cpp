#include "failover.hpp"

#include <holdfast/codec.hpp>
#include <holdfast/failover.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/nlohmann.hpp>
#include <holdfast/store/memory.hpp>

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace holdfast::bench {

namespace {

/// What the calls answer: a small document.
struct quote {
  std::string symbol;
  double price = 0;
  std::int64_t volume = 0;
  std::string market;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(quote, symbol, price, volume, market)
};
quote quote_of(const std::string& symbol) { return {.symbol = symbol, .price = 101.25, .volume = 1'234'567, .market = "Euronext Paris"}; }

/// An answer whose codec does nothing.
struct nothing {};
std::string holdfast_encode(const nothing&) { return {}; }
nothing holdfast_decode(std::string_view, std::type_identity<nothing>) { return {}; }

constexpr std::size_t keys = 1024;
std::string symbol(std::uint64_t i) { return "SYM" + std::to_string(i % keys); }
const std::array<std::string, keys>& symbols() {
  static const auto all = [] {
    std::array<std::string, keys> made;
    for (std::size_t i = 0; i < keys; ++i) made[i] = symbol(i);
    return made;
  }();
  return all;
}

/// The floor's store: what anybody would write first, one hash map of entries by key, with a lock.
class plain_map {
 public:
  void put(entry&& one) {
    const std::scoped_lock lock(mutex_);
    auto& at = entries_[one.key];
    if (one.as_of >= at.as_of) at = std::move(one);
  }
  std::optional<entry> find(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, entry> entries_;
};

/// An engine on the memory store, and one point of it.
template <class T>
struct protected_call {
  engine on;
  point<T(const std::string&)> call;

  template <class F>
  explicit protected_call(F upstream)
      : on(make_memory_store()), call(on.protect("quote-by-symbol", {.domain = "quote", .expiry = std::chrono::hours(24)}, upstream)) {}
};

/// Key, encode, insert: what keeping an answer costs at least.
template <class T>
std::function<void(std::uint64_t)> keep_floor(T (*make)(const std::string&)) {
  const auto map = std::make_shared<plain_map>();
  const key::failover_keys made({.name = "quote-by-symbol", .domain = "quote"});
  return [=](std::uint64_t times) {
    const auto& all = symbols();
    const auto clock = holdfast::system_clock();
    for (std::uint64_t i = 0; i < times; ++i) {
      const auto& name = all[i % keys];
      const T value = make(name);
      const auto now = clock->now();
      map->put({.name = "quote",
                .key = made(name),
                .as_of = now,
                .expire_on = now + std::chrono::hours(24),
                .payload = encode_payload(value),
                .payload_class = "holdfast.bench.quote",
                .realm = {}});
      bench::keep(value);
    }
  };
}

nothing nothing_of(const std::string&) { return {}; }

template <class T>
contest success(std::string name, T (*make)(const std::string&)) {
  contest made;
  made.name = std::move(name);
  made.bar = 1.5;
  const auto ours = std::make_shared<protected_call<T>>(make);
  made.ours = [ours](std::uint64_t times) {
    const auto& all = symbols();
    for (std::uint64_t i = 0; i < times; ++i) bench::keep(ours->call(all[i % keys]));
  };
  made.floor = keep_floor<T>(make);
  return made;
}

/// A recovery alone: what it costs to throw is the upstream's business, so the exception is there already.
contest recovery() {
  contest made;
  made.name = "recover.memory";
  made.bar = 1.5;
  const auto ours = std::make_shared<protected_call<quote>>(quote_of);
  const auto map = std::make_shared<plain_map>();
  const key::failover_keys keyed({.name = "quote-by-symbol", .domain = "quote"});
  for (const auto& each : symbols()) {
    (void)ours->call(each);
    map->put({.name = "quote", .key = keyed(each), .payload = encode_payload(quote_of(each)), .payload_class = "holdfast.bench.quote"});
  }
  made.ours = [ours, down = std::make_exception_ptr(std::runtime_error("down"))](std::uint64_t times) {
    const auto& all = symbols();
    for (std::uint64_t i = 0; i < times; ++i) bench::keep(ours->call.begin(all[i % keys]).fail(down));
  };
  made.floor = [map, keyed](std::uint64_t times) {
    const auto& all = symbols();
    for (std::uint64_t i = 0; i < times; ++i) {
      const auto row = map->find(keyed(all[i % keys]));
      bench::keep(decode_payload<quote>(row.value().payload.value()));
    }
  };
  return made;
}

/// The same calls by one thread and by two: the ratio is the time that one needs by the time that two need.
contest two_threads() {
  contest made;
  made.name = "threads.one_by_two";
  made.bar = 1.6;
  made.side = bar_is::at_least;
  // So many calls are one, so that starting a thread does not count.
  constexpr std::uint64_t calls = 16384;
  const auto ours = std::make_shared<protected_call<quote>>(quote_of);
  const auto work = [ours](std::uint64_t times, std::uint64_t from) {
    const auto& all = symbols();
    for (std::uint64_t i = 0; i < times; ++i) bench::keep(ours->call(all[(from + i) % keys]));
  };
  made.ours = [work](std::uint64_t times) { work(times * calls, 0); };
  made.floor = [work](std::uint64_t times) {
    std::jthread other([&] { work(times * calls / 2, keys / 2); });
    work(times * calls / 2, 0);
  };
  return made;
}

}  // namespace

std::vector<contest> failover_contests() {
  std::vector<contest> all;
  all.push_back(success<quote>("success.json", quote_of));
  all.push_back(success<nothing>("success.null_codec", nothing_of));
  all.push_back(recovery());
  all.push_back(two_threads());
  return all;
}

}  // namespace holdfast::bench
