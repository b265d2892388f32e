#include <holdfast/store/sealed.hpp>

#include "base/aes_gcm.hpp"
#include "base/nonce_source.hpp"
#include "store/health_problems.hpp"
#include "store/sealed/cipher_cache.hpp"
#include "store/sealed/rekey.hpp"
#include "store/sealed/sealer.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace HOLDFAST_NAMESPACE {

rewritable_store::~rewritable_store() = default;

std::vector<std::string> rewritable_store::names(std::string_view realm, std::size_t limit,
                                                 std::string_view after) {
  std::vector<std::string> result;
  std::string previous(after);
  while (result.size() < limit) {
    const auto next = name_after(previous, realm);
    if (!next) break;
    result.push_back(*next);
    previous = *next;
  }
  return result;
}

namespace detail::store {

namespace {

detail::nonce_source::instance_id random_instance() {
  detail::nonce_source::instance_id id{};
  detail::fill_random(id);
  return id;
}

/// A random start of the counter makes repeated nonces unlikely even if two stores draw the same
/// instance id.
std::uint32_t random_start() {
  std::array<std::byte, 4> bytes{};
  detail::fill_random(bytes);
  std::uint32_t start = 0;
  for (const auto byte : bytes) start = start << 8U | std::to_integer<std::uint32_t>(byte);
  return start;
}

class sealing_store final : public sealed_store {
 public:
  sealing_store(std::shared_ptr<holdfast::store> next, sealed_options options)
      : next_(std::move(next)), options_(std::move(options)) {
    if (!next_) throw error(errc::invalid_argument, "there is no store to seal");
    use(std::exchange(options_.keys, {}));
  }

  sealing_store(const sealing_store&) = delete;
  sealing_store& operator=(const sealing_store&) = delete;
  ~sealing_store() override = default;

  void use(sealing_ring keys) override {
    ciphers_.replace_keys(std::make_shared<const sealer>(keys, options_, next_->peer(), nonces_));
  }

  void put(std::span<const entry> entries) override {
    const auto cipher = ciphers_.borrow();
    if (entries.size() == 1) {
      seal(*cipher->sealer, entries.front(), cipher->sealed);
      next_->put(cipher->sealed);
    } else {
      std::vector<entry> sealed;
      sealed.reserve(entries.size());
      for (const entry& e : entries) seal(*cipher->sealer, e, sealed.emplace_back());
      next_->put(sealed);
    }
    const auto payloads =
        std::ranges::count_if(entries, [](const entry& e) { return !e.tombstone(); });
    cipher->seals.add(static_cast<std::uint64_t>(payloads));
  }

  std::optional<entry> find(place location, std::string_view key) override {
    auto e = next_->find(location, key);
    if (e && !e->tombstone()) open(*ciphers_.borrow(), *e);
    return e;
  }

  /// An entry that cannot be opened is not remembered, so that the caller asks `find`, which throws
  /// the reason and counts it.
  remembered_entry find_in_memory(place location, std::string_view key) override {
    auto remembered = next_->find_in_memory(location, key);
    if (!remembered.entry || remembered.entry->tombstone()) return remembered;
    const auto cipher = ciphers_.borrow();
    try {
      if (!cipher->sealer->open(*remembered.entry)) cipher->old_opens.add(1);
    } catch (const error&) {
      return {};
    }
    cipher->opens.add(1);
    return remembered;
  }

  std::vector<std::optional<entry>> find_many(place location,
                                              std::span<const std::string> keys) override {
    auto entries = next_->find_many(location, keys);
    const auto cipher = ciphers_.borrow();
    for (auto& e : entries) {
      if (e && !e->tombstone()) open(*cipher, *e);
    }
    return entries;
  }

  entry_page find_all(place location, std::size_t limit, std::string_view after) override {
    auto page = next_->find_all(location, limit, after);
    const auto cipher = ciphers_.borrow();
    const auto unreadable = std::erase_if(page.entries, [&](entry& e) {
      try {
        if (!e.tombstone()) open(*cipher, e);
        return false;
      } catch (const error&) {
        return true;
      }
    });
    page.unreadable += unreadable;
    return page;
  }

  bool erase(place location, std::string_view key, timestamp as_of) override {
    return next_->erase(location, key, as_of);
  }
  std::size_t expire(timestamp before, std::size_t limit) override {
    return next_->expire(before, limit);
  }
  std::uint64_t count(place location) override { return next_->count(location); }
  expiry_profile expiring(place location, std::span<const timestamp> times) override {
    return next_->expiring(location, times);
  }

  [[nodiscard]] holdfast::peer peer() const noexcept override { return next_->peer(); }
  [[nodiscard]] bool waits() const noexcept override { return next_->waits(); }

  store_health health() noexcept override {
    auto result = next_->health();
    result.unreadable += ciphers_.numbers().refused;
    try {
      report_unreadable(result, unreadable_, system_clock()->steady());
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // Out of memory: the number is there, without a text.
    }
    return result;
  }

  rekey_report rekey(const rekey_options& options) override {
    auto* const rewritable = dynamic_cast<rewritable_store*>(next_.get());
    if (rewritable == nullptr) {
      throw error(errc::invalid_argument,
                  "the store below cannot replace a payload in place; rekey the store of the "
                  "database itself");
    }
    sealer cipher(*ciphers_.current());
    return rekey_entries(*next_, *rewritable, cipher, options);
  }

  sealed_numbers numbers() const noexcept override { return ciphers_.numbers(); }

 private:
  /// Reuses the memory of `sealed`.
  static void seal(sealer& cipher, const entry& plain, entry& sealed) {
    sealed.name = plain.name;
    sealed.key = plain.key;
    sealed.as_of = plain.as_of;
    sealed.expire_on = plain.expire_on;
    sealed.payload_class = plain.payload_class;
    sealed.realm = plain.realm;
    if (plain.tombstone()) sealed.payload.reset();
    else cipher.seal(plain, sealed.payload ? *sealed.payload : sealed.payload.emplace());
  }

  static void open(cipher_cache::cipher& cipher, entry& e) {
    try {
      if (!cipher.sealer->open(e)) cipher.old_opens.add(1);
      cipher.opens.add(1);
    } catch (const error&) {
      cipher.refusals.add(1);
      throw;
    }
  }

  std::shared_ptr<holdfast::store> next_;
  sealed_options options_;  // without the keys, which are in ciphers_
  // A long-lived process may seal more than 2^32 payloads; then it continues with a new instance
  // id.
  detail::nonce_source nonces_{&random_instance, random_start(),
                               detail::nonce_source::when_exhausted::renew};
  cipher_cache ciphers_{};
  observed_counter unreadable_{};
};

}  // namespace

}  // namespace detail::store

std::shared_ptr<sealed_store> make_sealed(std::shared_ptr<store> next, sealed_options options) {
  return std::make_shared<detail::store::sealing_store>(std::move(next), std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
