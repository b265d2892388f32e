#include <holdfast/cachekit/envelope.hpp>

#include "unit/key/reserved_memory.hpp"
#include "unit/key/wire_support.hpp"

#include <cstdint>

namespace {

using holdfast::errc;
using holdfast::key::byte_string;
using holdfast::key::max_envelope_size;
using holdfast::key::unwrap;
using holdfast::key::wrap;
using wire::from_hex;
using wire::repeated;
using wire::to_hex;
using wire::operator+;

// The parts of the envelope of the byte ff, as published.
const std::string head = "94";
const std::string packed = "c40210ff";
const std::string checksum = "98ccd6ccbcccec3c6b29ccd72e";
const std::string original_size = "01";
const std::string format = "a76d73677061636b";

auto open(std::string_view hex) { return unwrap(from_hex(hex)); }

byte_string noise(std::size_t size) {
  byte_string bytes(size);
  std::uint64_t state = 88172645463325252U;
  for (auto& byte : bytes) {
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    byte = static_cast<std::byte>(state);
  }
  return bytes;
}

// ---- published vectors

TEST(Envelope, ReadsThePublishedEnvelopesInBothEncodings) {
  for (const auto& vector : wire::vectors("cachekit_envelope", "envelopes")) {
    for (const auto* encoding : {"listed", "bytes"}) {
      const auto read = open(vector.at(encoding).get<std::string>());
      EXPECT_EQ(to_hex(read.data), to_hex(repeated(vector.at("data"))))
          << vector.at("name") << ' ' << encoding;
      EXPECT_EQ(read.format, vector.at("format").get<std::string>()) << vector.at("name");
    }
  }
}

TEST(Envelope, WritesThePublishedEnvelopes) {
  // Compressors give different bytes. The marker before them and everything after them are fixed.
  const auto marker_of = [](const byte_string& envelope) {
    return to_hex(std::span(envelope).first(2));
  };
  const auto rest_of = [](const byte_string& envelope) {
    return to_hex(std::span(envelope).subspan(3 + std::to_integer<std::size_t>(envelope.at(2))));
  };
  for (const auto& vector : wire::vectors("cachekit_envelope", "envelopes")) {
    const auto data = repeated(vector.at("data"));
    const auto expected = from_hex(vector.at("bytes").get<std::string>());
    const auto written = wrap(data, vector.at("format").get<std::string>());
    EXPECT_EQ(marker_of(written), "94c4") << vector.at("name");
    EXPECT_EQ(rest_of(written), rest_of(expected)) << vector.at("name");
    EXPECT_EQ(unwrap(written).data, data) << vector.at("name");
    if (data.size() < 13) {
      EXPECT_EQ(to_hex(written), to_hex(expected))
          << "LZ4 leaves no choice here: " << vector.at("name");
    }
  }
}

// ---- round trips

TEST(Envelope, RoundTripsEverySizeOfHeader) {
  for (const std::size_t size :
       {0U, 1U, 127U, 128U, 250U, 254U, 255U, 256U, 65'000U, 65'535U, 65'536U, 70'000U, 300'000U}) {
    const auto data = noise(size);
    const auto read = unwrap(wrap(data));
    EXPECT_EQ(read.data, data) << size;
    EXPECT_EQ(read.format, "msgpack");
  }
}

TEST(Envelope, Compresses) {
  const auto data = repeated("41", 1'000'000);
  const auto written = wrap(data, "arrow");
  EXPECT_LT(written.size(), 5'000U);
  EXPECT_EQ(unwrap(written).data, data);
  EXPECT_EQ(unwrap(written).format, "arrow");
}

TEST(Envelope, FormatsHaveEverySizeOfHeader) {
  for (const std::size_t size : {0U, 31U, 32U, 255U})
    EXPECT_EQ(unwrap(wrap({}, std::string(size, 'f'))).format, std::string(size, 'f'));
  EXPECT_ERROR(errc::too_large, wrap({}, std::string(256, 'f')));
  EXPECT_ERROR(errc::ill_formed_text, wrap({}, "\xff"));
}

TEST(Envelope, AnyWidthOfIntegersAndHeadersIsRead) {
  const auto data = from_hex("ff");
  for (const auto* list : {"94", "dc0004", "dd00000004"})
    EXPECT_EQ(open(list + packed + checksum + original_size + format).data, data) << list;
  for (const auto* bytes : {"c50002", "c600000002"})
    EXPECT_EQ(open(head + bytes + "10ff" + checksum + original_size + format).data, data) << bytes;
  for (const auto* listed : {"9210ccff", "dc000210ccff", "dd0000000210ccff", "92d010d100ff"}) {
    EXPECT_EQ(open(head + listed + checksum + original_size + format).data, data) << listed;
  }
  for (const auto* size : {"cc01", "cd0001", "ce00000001", "cf0000000000000001", "d001", "d10001",
                           "d200000001", "d30000000000000001"}) {
    EXPECT_EQ(open(head + packed + checksum + size + format).data, data) << size;
  }
  EXPECT_EQ(open(head + packed + "dc0008d100d6ccbcccec3c6b29ccd72e" + original_size + format).data,
            data);
  EXPECT_EQ(open(head + packed + checksum + original_size + "d9076d73677061636b").format,
            "msgpack");
}

// ---- what is refused

TEST(Envelope, RefusesOtherDocuments) {
  for (const auto* hex : {"", "c0", "93c40100", "90", "84", "95c4010098", "c1", "a0"})
    EXPECT_ERROR(errc::malformed, open(hex)) << hex;
}

TEST(Envelope, RefusesEveryTruncation) {
  for (const auto& vector : wire::vectors("cachekit_envelope", "envelopes")) {
    for (const auto* encoding : {"listed", "bytes"}) {
      const auto whole = from_hex(vector.at(encoding).get<std::string>());
      for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_ERROR(errc::malformed, unwrap(std::span(whole).first(size)))
            << vector.at("name") << ' ' << size;
      }
    }
  }
}

TEST(Envelope, RefusesTrailingBytes) {
  EXPECT_ERROR(errc::malformed, open(head + packed + checksum + original_size + format + "00"));
}

TEST(Envelope, RefusesFieldsOfAnotherType) {
  for (const auto* wrong :
       {"a210ff", "c0", "10", "80", "d40110", "9210cd0100", "9210ff", "92d0ff10", "92c410c4"}) {
    EXPECT_ERROR(errc::malformed, open(head + wrong + checksum + original_size + format)) << wrong;
  }
  for (const auto* wrong : {"c408d6bcec3c6b29d72e", "97d60000000000cc", "990000000000000000cc00",
                            "980000000000000000cd0100", "98ff00000000000000"}) {
    EXPECT_ERROR(errc::malformed, open(head + packed + wrong + original_size + format)) << wrong;
  }
  for (const auto* wrong :
       {"ff", "d0ff", "d3ffffffffffffffff", "c0", "a131", "cb3ff0000000000000", "9101"}) {
    EXPECT_ERROR(errc::malformed, open(head + packed + checksum + wrong + format)) << wrong;
  }
  for (const auto* wrong : {"c0", "c403616263", "9101", "05"})
    EXPECT_ERROR(errc::malformed, open(head + packed + checksum + original_size + wrong)) << wrong;
  EXPECT_ERROR(errc::ill_formed_text, open(head + packed + checksum + original_size + "a1ff"));
}

TEST(Envelope, RefusesMissingData) {
  EXPECT_ERROR(errc::malformed, open(head + "c400" + checksum + original_size + format));
  EXPECT_ERROR(errc::malformed, open(head + "90" + checksum + original_size + format));
}

TEST(Envelope, RefusesWhatDeclaresMoreThanItHolds) {
  EXPECT_ERROR(errc::malformed, open("94c6ffffffff10"));
  EXPECT_ERROR(errc::malformed, open("94ddffffffff10"));
  EXPECT_ERROR(errc::malformed, open("94dd1fffffff10"))
      << "within the size limit, not within the bytes that are there";
  EXPECT_ERROR(errc::malformed, open(head + packed + checksum + original_size + "dbffffffff61"));
}

TEST(Envelope, RefusesAChecksumThatDoesNotMatch) {
  EXPECT_ERROR(errc::tampered,
               open(head + packed + "98ccd6ccbcccec3c6b29ccd72f" + original_size + format));
  EXPECT_ERROR(errc::tampered, open(head + "c40210fe" + checksum + original_size + format));
}

TEST(Envelope, RefusesDamagedPackedData) {
  EXPECT_ERROR(errc::malformed, open(head + "c402f0ff" + checksum + original_size + format));
  EXPECT_ERROR(errc::malformed, open(head + packed + checksum + "00" + format))
      << "more than it says";
  EXPECT_ERROR(errc::malformed, open(head + packed + checksum + "02" + format))
      << "less than it says";
}

TEST(Envelope, RefusesABombBeforeItAllocatesMemory) {
  EXPECT_ERROR(errc::malformed, open(head + packed + checksum + "cd07d0" + format))
      << "2000 bytes of 2: within the ratio, but they are not there";
  EXPECT_ERROR(errc::too_large, open(head + packed + checksum + "cd07d1" + format)) << "2001";
  EXPECT_ERROR(errc::too_large, open(head + packed + checksum + "ce20000000" + format))
      << "512 MiB";
  EXPECT_ERROR(errc::too_large, open(head + packed + checksum + "ce20000001" + format));
  EXPECT_ERROR(errc::too_large, open(head + packed + checksum + "cfffffffffffffffff" + format));
}

TEST(Envelope, RefusesMoreThanTheLimit) {
  const wire::reserved_memory memory(max_envelope_size + 1);
  EXPECT_ERROR(errc::too_large, wrap(memory.bytes()));
  memory.write(from_hex("94c61ffffff0"));
  EXPECT_ERROR(errc::too_large, unwrap(memory.bytes()));
  EXPECT_ERROR(errc::malformed, unwrap(memory.bytes().first(max_envelope_size)))
      << "read as far as the checksum";
}

TEST(Envelope, ErrorsSayWhichFieldIsWrong) {
  const auto thrown =
      wire::error_of([] { static_cast<void>(open(head + packed + checksum + "ff" + format)); });
  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->path(), "envelope[2]");
}

}  // namespace
