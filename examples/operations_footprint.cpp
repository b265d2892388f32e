// What each object costs: the threads that it has, and the memory that it holds, right after it was
// made and when it works. The table of docs/operations.md is what this prints, so the tests notice
// when an object gets a thread or grows.

#include <holdfast/holdfast.hpp>
#include <holdfast/store/cleanup.hpp>

#include <malloc.h>

#include <cstddef>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <latch>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace {

std::size_t threads_now() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}
std::size_t bytes_now() { return ::mallinfo2().uordblks; }

/// Makes something, and prints what there is more than before. The memory is a promise with room to
/// spare, since exact bytes differ from compiler to compiler; a broken promise shows.
template <class Make>
void row(std::string_view name, std::size_t kib, Make make, std::size_t threads_before = 1) {
  // A thread that has ended is seen a little longer
  while (threads_now() != threads_before) std::this_thread::yield();
  const auto bytes = bytes_now();
  const auto kept = make();
  const auto more = bytes_now() - bytes;
  const std::string size =
      more < kib * 1024 ? "under " + std::to_string(kib) + " KiB" : std::to_string(more) + " bytes";
  std::cout << "| " << name << " | " << threads_now() - threads_before << " | " << size << " |\n";
}

/// A pool that was given work for all its threads, and more.
std::shared_ptr<holdfast::thread_pool> busy_pool(std::size_t threads) {
  auto pool = holdfast::make_thread_pool({.threads = threads});
  const auto all_run = std::make_shared<std::latch>(static_cast<std::ptrdiff_t>(threads));
  for (std::size_t i = 0; i < threads; ++i)
    (void)pool->post([all_run] { all_run->arrive_and_wait(); });
  while (pool->count().ran < threads) std::this_thread::yield();
  return pool;
}

}  // namespace

int main() {
  const auto file = std::filesystem::temp_directory_path() / "holdfast_operations_footprint.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);
  const std::string url = "sqlite://" + file.string();

  std::cout << "# footprint\n";
  row("`make_thread_pool({.threads = 4})`, without work yet", 4,
      [] { return holdfast::make_thread_pool({.threads = 4}); });
  row("the same, after 4 tasks at once", 32, [] { return busy_pool(4); });
  row("`make_prometheus_registry()`", 4, [] { return holdfast::make_prometheus_registry(); });
  row("`open(\"sqlite:...\")`, not used yet", 4, [&] { return holdfast::open(url); });
  row("its store, which has a connection", 1024,
      [&] { return holdfast::open(url).store({.create_schema = true}); });
  const auto db = holdfast::open(url);
  const auto store = db.store();  // connects: the pool has a thread now
  row(
      "a `cleanup` on it, waiting for its hour", 16,
      [&] { return std::make_unique<holdfast::cleanup>(db, store); }, 2);
}
