#include "bench/failover.hpp"

#include <holdfast/codec.hpp>
#include <holdfast/failover.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/nlohmann.hpp>
#include <holdfast/store/memory.hpp>

#include <array>
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

/// The answer of the calls: a small document.
struct quote {
  std::string symbol;
  double price = 0;
  std::int64_t volume = 0;
  std::string market;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(quote, symbol, price, volume, market)
};
quote quote_of(const std::string& symbol) {
  return {.symbol = symbol, .price = 101.25, .volume = 1'234'567, .market = "Euronext Paris"};
}

/// An answer whose codec does nothing.
struct nothing {};
std::string holdfast_encode(const nothing&) { return {}; }
nothing holdfast_decode(std::string_view, std::type_identity<nothing>) { return {}; }
nothing nothing_of(const std::string&) { return {}; }

/// The arguments of the calls.
constexpr std::size_t symbol_count = 1024;
const auto symbols = [] {
  std::array<std::string, symbol_count> names;
  for (std::size_t i = 0; i < symbol_count; ++i) names[i] = "SYM" + std::to_string(i);
  return names;
}();
const std::string& symbol_at(std::uint64_t index) { return symbols[index % symbol_count]; }

constexpr std::string_view effective_name = "quote";
constexpr auto answer_lifetime = std::chrono::hours(24);
key::failover_keys quote_keys() {
  return key::failover_keys({.name = "quote-by-symbol", .domain = effective_name});
}

/// The store of the floor: one hash map with a lock.
class locked_map {
 public:
  void put(entry&& added) {
    const std::scoped_lock lock(mutex_);
    auto& current = entries_[added.key];
    if (added.as_of >= current.as_of) current = std::move(added);
  }
  std::optional<entry> find(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    const auto position = entries_.find(key);
    return position == entries_.end() ? std::nullopt : std::optional(position->second);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, entry> entries_;
};

/// An engine on a memory store, and one point of it.
template <class T>
struct protected_call {
  engine protecting_engine;
  point<T(const std::string&)> call;

  explicit protected_call(T (*upstream)(const std::string&))
      : protecting_engine(make_memory_store()),
        call(protecting_engine.protect(
            "quote-by-symbol", {.domain = std::string(effective_name), .expiry = answer_lifetime},
            upstream)) {}
};

/// The floor of a successful call: make the key, encode the answer, insert it.
template <class T>
workload call_and_insert(T (*upstream)(const std::string&)) {
  return [upstream, keys = quote_keys(),
          map = std::make_shared<locked_map>()](std::uint64_t iterations) {
    const auto clock = holdfast::system_clock();
    for (std::uint64_t i = 0; i < iterations; ++i) {
      const auto& symbol = symbol_at(i);
      const T answer = upstream(symbol);
      const auto now = clock->now();
      map->put({.name = std::string(effective_name),
                .key = keys(symbol),
                .as_of = now,
                .expire_on = now + answer_lifetime,
                .payload = encode_payload(answer),
                .payload_class = "holdfast.bench.quote",
                .realm = {}});
      do_not_optimize(answer);
    }
  };
}

template <class T>
comparison successful_call(std::string name, T (*upstream)(const std::string&)) {
  return {.name = std::move(name),
          .bar = 1.5,
          .ours =
              [ours = std::make_shared<protected_call<T>>(upstream)](std::uint64_t iterations) {
                for (std::uint64_t i = 0; i < iterations; ++i)
                  do_not_optimize(ours->call(symbol_at(i)));
              },
          .floor = call_and_insert(upstream)};
}

/// A recovery without the cost of throwing: the exception exists before the measurement.
comparison recovery() {
  const auto ours = std::make_shared<protected_call<quote>>(quote_of);
  const auto map = std::make_shared<locked_map>();
  const key::failover_keys keys = quote_keys();
  for (const auto& symbol : symbols) {
    (void)ours->call(symbol);
    map->put({.name = std::string(effective_name),
              .key = keys(symbol),
              .payload = encode_payload(quote_of(symbol)),
              .payload_class = "holdfast.bench.quote"});
  }
  const auto failure = std::make_exception_ptr(std::runtime_error("down"));
  return {.name = "recover.memory",
          .bar = 1.5,
          .ours =
              [ours, failure](std::uint64_t iterations) {
                for (std::uint64_t i = 0; i < iterations; ++i)
                  do_not_optimize(ours->call.begin(symbol_at(i)).fail(failure));
              },
          .floor =
              [map, keys](std::uint64_t iterations) {
                for (std::uint64_t i = 0; i < iterations; ++i) {
                  const auto stored = map->find(keys(symbol_at(i)));
                  do_not_optimize(decode_payload<quote>(stored.value().payload.value()));
                }
              }};
}

/// Two threads that call one point, and two that have an engine each and share nothing. If both
/// threads store the answers of the same keys, they also write the same rows in turn; this has a
/// row of its own.
enum class key_choice : std::uint8_t { own, same };
comparison two_threads(std::string name, double bar, key_choice keys) {
  // One iteration is many calls, so that starting a thread is not measured.
  constexpr std::uint64_t calls = 16384;
  using protected_quote = protected_call<quote>;
  const std::uint64_t key_count = keys == key_choice::own ? symbol_count / 2 : symbol_count;
  const auto call_many = [key_count](const protected_quote& ours, std::uint64_t count,
                                     std::uint64_t first_symbol) {
    for (std::uint64_t i = 0; i < count; ++i)
      do_not_optimize(ours.call(symbol_at(first_symbol + i % key_count)));
  };
  const auto on_two_threads = [call_many](std::shared_ptr<protected_quote> first,
                                          std::shared_ptr<protected_quote> second) {
    return [=](std::uint64_t iterations) {
      const std::jthread other(
          [&] { call_many(*second, iterations * calls / 2, symbol_count / 2); });
      call_many(*first, iterations * calls / 2, 0);
    };
  };
  const auto shared = std::make_shared<protected_quote>(quote_of);
  return {.name = std::move(name),
          .bar = bar,
          .ours = on_two_threads(shared, shared),
          .floor = on_two_threads(std::make_shared<protected_quote>(quote_of),
                                  std::make_shared<protected_quote>(quote_of))};
}

}  // namespace

std::vector<comparison> failover_comparisons() {
  std::vector<comparison> all;
  all.push_back(successful_call<quote>("success.json", quote_of));
  all.push_back(successful_call<nothing>("success.null_codec", nothing_of));
  all.push_back(recovery());
  all.push_back(two_threads("threads.shared_by_own", 1 / 0.9, key_choice::own));
  all.push_back(two_threads("threads.same_keys", 1.5, key_choice::same));
  return all;
}

}  // namespace holdfast::bench
