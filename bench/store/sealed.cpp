#include "bench/store/sealed.hpp"

#include <holdfast/store/sealed.hpp>

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace holdfast::bench {

namespace {

entry make_entry(std::size_t payload_bytes) {
  entry created{.name = "bench.country",
                .key = "00000000-0000-4000-8000-000000000000",
                .payload_class = "bench.Country"};
  created.expire_on = timestamp::max();
  created.payload = std::string(payload_bytes, 'x');
  return created;
}

/// A store of one entry. It keeps what is put only while `recording` is set.
class one_entry_store final : public store {
 public:
  using store::put;
  void put(std::span<const entry> entries) override {
    if (recording) stored = entries.front();
    do_not_optimize(entries);
  }
  std::optional<entry> find(place, std::string_view) override { return stored; }
  entry_page find_all(place, std::size_t, std::string_view) override { return {}; }
  bool erase(place, std::string_view, timestamp) override { return false; }
  std::size_t expire(timestamp, std::size_t) override { return 0; }
  std::uint64_t count(place) override { return 0; }
  store_health health() noexcept override { return {}; }

  bool recording = false;
  std::optional<entry> stored{};
};

constexpr std::array<std::byte, sealing_key::size> key_bytes{std::byte{7}};

sealed_options make_sealed_options() {
  sealed_options options;
  options.keys.add("bench", sealing_key::from_bytes(key_bytes));
  return options;
}

/// AES-256-GCM with one context, one key schedule, one buffer, and no associated data.
class raw_cipher {
 public:
  enum class direction : std::uint8_t { encrypt, decrypt };

  raw_cipher(std::size_t bytes, direction repeated)
      : input_(bytes, 'x'),
        output_(bytes, ' '),
        context_(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free) {
    EVP_CipherInit_ex(context_.get(), EVP_aes_256_gcm(), nullptr, octets(key_bytes.data()), nullptr,
                      1);
    run();
    if (repeated == direction::encrypt) return;
    std::swap(input_, output_);
    encrypts_ = false;
  }

  void run() {
    if (encrypts_) std::memcpy(nonce_.data(), &++count_, sizeof count_);
    int written = 0;
    std::array<unsigned char, 16> unused{};
    bool succeeded = EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, nonce_.data(),
                                       encrypts_ ? 1 : 0) == 1 &&
                     EVP_CipherUpdate(context_.get(), octets(output_.data()), &written,
                                      octets(input_.data()), static_cast<int>(input_.size())) == 1;
    if (!encrypts_) succeeded = succeeded && exchange_tag(EVP_CTRL_AEAD_SET_TAG);
    succeeded = succeeded && EVP_CipherFinal_ex(context_.get(), unused.data(), &written) == 1;
    if (encrypts_) succeeded = succeeded && exchange_tag(EVP_CTRL_AEAD_GET_TAG);
    if (!succeeded) throw error(errc::internal, "OpenSSL, used by hand, failed");
    do_not_optimize(output_);
  }

 private:
  static const unsigned char* octets(const void* bytes) {
    return static_cast<const unsigned char*>(bytes);
  }
  static unsigned char* octets(void* bytes) { return static_cast<unsigned char*>(bytes); }
  bool exchange_tag(int control) {
    return EVP_CIPHER_CTX_ctrl(context_.get(), control, 16, tag_.data()) == 1;
  }

  std::string input_;
  std::string output_;
  bool encrypts_ = true;
  std::uint64_t count_ = 0;
  std::array<unsigned char, 12> nonce_{};
  std::array<unsigned char, 16> tag_{};
  std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context_;
};

/// Compares the time of `whole` minus that of `part` with the floor. The three run alternately, in
/// short rounds.
template <class Whole, class Part, class Floor>
row measure_added(const std::string& name, const Whole& whole, const Part& part, const Floor& floor,
                  const measure_options& options) {
  const auto nanoseconds = [](const auto& work, std::uint64_t iterations) {
    const auto repeated = [&work](std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i) work();
    };
    return seconds_of(repeated, iterations) * 1e9 / static_cast<double>(iterations);
  };
  return best_of_three([&] {
    const auto iterations = std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(options.round_seconds * 1e9 / nanoseconds(floor, 10)));
    std::vector<double> added_times;
    std::vector<double> floor_times;
    for (std::size_t round = 0; round < options.rounds; ++round) {
      floor_times.push_back(nanoseconds(floor, iterations));
      added_times.push_back(nanoseconds(whole, iterations) - nanoseconds(part, iterations));
    }
    return make_row(name, median(added_times), median(floor_times), "ns", 1.3);
  });
}

}  // namespace

std::vector<row> measure_sealed(const measure_options& options) {
  std::vector<row> rows;
  for (const auto& [name, bytes] :
       {std::pair<std::string, std::size_t>{"1k", 1'000}, {"10k", 10'000}, {"100k", 100'000}}) {
    const auto below = std::make_shared<one_entry_store>();
    const auto sealed = make_sealed(below, make_sealed_options());
    const entry plain = make_entry(bytes);
    below->recording = true;
    sealed->put(plain);
    below->recording = false;
    raw_cipher encryption(bytes, raw_cipher::direction::encrypt);
    raw_cipher decryption(bytes, raw_cipher::direction::decrypt);
    rows.push_back(measure_added(
        "store.seal_" + name, [&] { sealed->put(plain); }, [&] { below->put(plain); },
        [&] { encryption.run(); }, options));
    rows.push_back(measure_added(
        "store.open_" + name, [&] { do_not_optimize(sealed->find(plain.name, plain.key)); },
        [&] { do_not_optimize(below->find(plain.name, plain.key)); }, [&] { decryption.run(); },
        options));
  }
  return rows;
}

}  // namespace holdfast::bench
