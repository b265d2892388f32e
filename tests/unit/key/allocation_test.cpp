// The hot paths allocate only the string that they return. The test replaces the global operator
// new of this program to count allocations.

#include <holdfast/key/cachekit.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/key/interop.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

namespace {
std::atomic<std::size_t> allocations{0};
}

// Not inlined: otherwise the compiler warns that memory of new is passed to free.
[[gnu::noinline]] void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

using namespace holdfast::key;

template <class F>
std::size_t allocations_of(F make) {
  (void)make();  // initialises what is allocated once per thread or process
  const auto before = allocations.load();
  const std::string key = make();
  const auto count = allocations.load() - before;
  EXPECT_FALSE(key.empty());
  return count;
}

TEST(KeyAllocations, TheReturnedStringIsTheOnlyOne) {
  const cachekit_keys cachekit({.ns = "users", .module = "app", .qualname = "get_user"});
  const interop_keys interop("users", "get_user");
  const failover_keys failover({.name = "country-by-code"});
  const std::string large(64 * 1024, 'x');
  const std::vector<int> numbers(1000, 7);
  const std::map<std::string, int> ten{{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5},
                                       {"f", 6}, {"g", 7}, {"h", 8}, {"i", 9}, {"j", 10}};

  EXPECT_EQ(allocations_of([&] { return cachekit(42, "alice", true); }), 1U);
  EXPECT_EQ(allocations_of([&] { return cachekit(42, kw("name", "alice"), kw("active", true)); }),
            1U);
  EXPECT_EQ(allocations_of([&] { return cachekit(large); }), 1U);
  EXPECT_EQ(allocations_of([&] { return cachekit(numbers, ten); }), 1U);
  EXPECT_EQ(allocations_of([&] { return interop(42, "alice", true, 2.5); }), 1U);
  EXPECT_EQ(allocations_of([&] { return interop(large); }), 1U);
  EXPECT_EQ(allocations_of([&] { return failover("FR"); }), 1U);
  EXPECT_EQ(allocations_of([&] { return failover("active", 7, 1.5, numbers); }), 1U);
  EXPECT_EQ(allocations_of([&] { return failover(large); }), 1U);
}

TEST(KeyAllocations, AreReallyCounted) {
  EXPECT_EQ(allocations_of([] { return std::string(100, 'x') + std::string(200, 'y'); }), 3U);
}

}  // namespace
