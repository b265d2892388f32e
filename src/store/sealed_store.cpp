#include <holdfast/store/sealed.hpp>

#include "base/aes_gcm.hpp"
#include "base/nonce_source.hpp"
#include "store/sealed_envelope.hpp"
#include "store/sealed_rekey.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

namespace HOLDFAST_NAMESPACE {

rewritable_store::~rewritable_store() = default;

namespace {

nonce_source::instance_id random_instance() {
  nonce_source::instance_id id{};
  fill_randomly(id);
  return id;
}

/// The counter starts anywhere: two stores that happen to draw the same instance will still hardly ever meet.
std::uint32_t random_start() {
  std::array<std::byte, 4> bytes{};
  fill_randomly(bytes);
  std::uint32_t start = 0;
  for (const auto each : bytes) start = start << 8U | std::to_integer<std::uint32_t>(each);
  return start;
}

/// An entry whose memory is used again by the next one: to allocate for a small payload takes half as long as to encrypt it. Only what is sealed
/// goes into it. Whoever comes while another has it gets one of its own.
class spare_entry {
 public:
  explicit spare_entry(std::atomic<entry*>& from) : from_(from), held_(from.exchange(nullptr, std::memory_order_acquire)) {
    if (!held_) held_ = std::make_unique<entry>();
  }
  spare_entry(const spare_entry&) = delete;
  spare_entry& operator=(const spare_entry&) = delete;
  ~spare_entry() {
    constexpr std::size_t most = 65'536;  // what a large payload needed is given back
    const auto& payload = held_->payload;
    if (payload && payload->capacity() > most) return;
    entry* none = nullptr;
    if (!from_.compare_exchange_strong(none, held_.get(), std::memory_order_release, std::memory_order_relaxed)) return;
    [[maybe_unused]] const entry* const kept = held_.release();
  }
  [[nodiscard]] entry& operator*() const noexcept { return *held_; }

 private:
  std::atomic<entry*>& from_;
  std::unique_ptr<entry> held_;
};

class sealing_store final : public sealed_store {
 public:
  sealing_store(std::shared_ptr<store> next, sealed_options options) : next_(std::move(next)), options_(std::move(options)) {
    if (!next_) throw error(errc::invalid_argument, "there is no store to seal");
    use(std::exchange(options_.keys, {}));
  }

  sealing_store(const sealing_store&) = delete;
  sealing_store& operator=(const sealing_store&) = delete;
  ~sealing_store() override { delete spare_.load(); }

  void use(sealing_ring keys) override {
    auto fresh = std::make_shared<const sealer>(keys, options_, next_->peer(), nonces_);
    const std::scoped_lock lock(mutex_);
    sealer_ = std::move(fresh);
  }

  void put(std::span<const entry> entries) override {
    if (entries.size() == 1) {
      spare_entry sealed(spare_);
      seal(*current(), entries.front(), *sealed);
      next_->put(*sealed);
    } else {
      const auto with = current();
      std::vector<entry> sealed;
      sealed.reserve(entries.size());
      for (const entry& each : entries) seal(*with, each, sealed.emplace_back());
      next_->put(sealed);
    }
    const auto payloads = std::ranges::count_if(entries, [](const entry& each) { return !each.tombstone(); });
    sealed_.fetch_add(static_cast<std::uint64_t>(payloads), std::memory_order_relaxed);
  }

  std::optional<entry> find(place where, std::string_view key) override {
    auto found = next_->find(where, key);
    if (found && !found->tombstone()) open(*current(), *found);
    return found;
  }

  entry_page find_all(place where, std::size_t limit, std::string_view after) override {
    auto page = next_->find_all(where, limit, after);
    const auto with = current();
    const auto unreadable = std::erase_if(page.entries, [&](entry& each) {
      try {
        if (!each.tombstone()) open(*with, each);
        return false;
      } catch (const error&) {
        return true;
      }
    });
    page.unreadable += unreadable;
    return page;
  }

  bool erase(place where, std::string_view key, timestamp as_of) override { return next_->erase(where, key, as_of); }
  std::size_t expire(timestamp before, std::size_t limit) override { return next_->expire(before, limit); }
  std::uint64_t count(place where) override { return next_->count(where); }

  [[nodiscard]] holdfast::peer peer() const noexcept override { return next_->peer(); }
  [[nodiscard]] bool waits() const noexcept override { return next_->waits(); }

  store_health health() noexcept override {
    auto result = next_->health();
    result.unreadable += refused_.load(std::memory_order_relaxed);
    return result;
  }

  rekey_report rekey(const rekey_options& options) override {
    auto* const below = dynamic_cast<rewritable_store*>(next_.get());
    if (below == nullptr) {
      throw error(errc::invalid_argument, "the store below cannot replace a payload where it is; rekey the store of the database itself");
    }
    return rekey_entries(*next_, *below, *current(), options);
  }

  sealed_numbers numbers() const noexcept override {
    return {.sealed = sealed_.load(), .opened = opened_.load(), .opened_old = opened_old_.load(), .refused = refused_.load()};
  }

 private:
  std::shared_ptr<const sealer> current() const {
    const std::scoped_lock lock(mutex_);
    return sealer_;
  }

  static void seal(const sealer& with, const entry& plain, entry& into) {
    into.name = plain.name;
    into.key = plain.key;
    into.as_of = plain.as_of;
    into.expire_on = plain.expire_on;
    into.payload_class = plain.payload_class;
    into.realm = plain.realm;
    if (plain.tombstone()) into.payload.reset();
    else with.seal(plain, into.payload ? *into.payload : into.payload.emplace());
  }

  void open(const sealer& with, entry& e) {
    try {
      if (!with.open(e)) opened_old_.fetch_add(1, std::memory_order_relaxed);
      opened_.fetch_add(1, std::memory_order_relaxed);
    } catch (const error&) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      throw;
    }
  }

  std::shared_ptr<store> next_;
  sealed_options options_;  // without its keys: they are in the sealer, ready for use
  // 2^32 payloads may be few for a process that lives long: it goes on with an instance of its own.
  nonce_source nonces_{&random_instance, random_start(), nonce_source::at_the_end::renew};
  mutable std::mutex mutex_;
  std::shared_ptr<const sealer> sealer_;
  std::atomic<entry*> spare_{nullptr};
  std::atomic<std::uint64_t> sealed_{0};
  std::atomic<std::uint64_t> opened_{0};
  std::atomic<std::uint64_t> opened_old_{0};
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace

std::shared_ptr<sealed_store> make_sealed(std::shared_ptr<store> next, sealed_options options) {
  return std::make_shared<sealing_store>(std::move(next), std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
