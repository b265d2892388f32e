#include <holdfast/store/sealed.hpp>

#include "base/aes_gcm.hpp"
#include "base/nonce_source.hpp"
#include "store/sealed_desks.hpp"
#include "store/sealed_envelope.hpp"
#include "store/sealed_rekey.hpp"

#include <algorithm>
#include <array>
#include <memory>
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

class sealing_store final : public sealed_store {
 public:
  sealing_store(std::shared_ptr<store> next, sealed_options options) : next_(std::move(next)), options_(std::move(options)) {
    if (!next_) throw error(errc::invalid_argument, "there is no store to seal");
    use(std::exchange(options_.keys, {}));
  }

  sealing_store(const sealing_store&) = delete;
  sealing_store& operator=(const sealing_store&) = delete;
  ~sealing_store() override = default;

  void use(sealing_ring keys) override { desks_.use(std::make_shared<const sealer>(keys, options_, next_->peer(), nonces_)); }

  void put(std::span<const entry> entries) override {
    const auto at = desks_.take();
    if (entries.size() == 1) {
      seal(*at->with, entries.front(), at->sealed);
      next_->put(at->sealed);
    } else {
      std::vector<entry> sealed;
      sealed.reserve(entries.size());
      for (const entry& each : entries) seal(*at->with, each, sealed.emplace_back());
      next_->put(sealed);
    }
    const auto payloads = std::ranges::count_if(entries, [](const entry& each) { return !each.tombstone(); });
    at->seals.add(static_cast<std::uint64_t>(payloads));
  }

  std::optional<entry> find(place where, std::string_view key) override {
    auto found = next_->find(where, key);
    if (found && !found->tombstone()) open(*desks_.take(), *found);
    return found;
  }

  entry_page find_all(place where, std::size_t limit, std::string_view after) override {
    auto page = next_->find_all(where, limit, after);
    const auto at = desks_.take();
    const auto unreadable = std::erase_if(page.entries, [&](entry& each) {
      try {
        if (!each.tombstone()) open(*at, each);
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
    result.unreadable += desks_.numbers().refused;
    return result;
  }

  rekey_report rekey(const rekey_options& options) override {
    auto* const below = dynamic_cast<rewritable_store*>(next_.get());
    if (below == nullptr) {
      throw error(errc::invalid_argument, "the store below cannot replace a payload where it is; rekey the store of the database itself");
    }
    sealer with(*desks_.current());
    return rekey_entries(*next_, *below, with, options);
  }

  sealed_numbers numbers() const noexcept override { return desks_.numbers(); }

 private:
  static void seal(sealer& with, const entry& plain, entry& into) {
    into.name = plain.name;
    into.key = plain.key;
    into.as_of = plain.as_of;
    into.expire_on = plain.expire_on;
    into.payload_class = plain.payload_class;
    into.realm = plain.realm;
    if (plain.tombstone()) into.payload.reset();
    else with.seal(plain, into.payload ? *into.payload : into.payload.emplace());
  }

  static void open(sealing_desk& at, entry& e) {
    try {
      if (!at.with->open(e)) at.opens_of_old.add(1);
      at.opens.add(1);
    } catch (const error&) {
      at.refusals.add(1);
      throw;
    }
  }

  std::shared_ptr<store> next_;
  sealed_options options_;  // without its keys: they are at the desks, ready for use
  // 2^32 payloads may be few for a process that lives long: it goes on with an instance of its own.
  nonce_source nonces_{&random_instance, random_start(), nonce_source::at_the_end::renew};
  sealing_desks desks_{};
};

}  // namespace

std::shared_ptr<sealed_store> make_sealed(std::shared_ptr<store> next, sealed_options options) {
  return std::make_shared<sealing_store>(std::move(next), std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
